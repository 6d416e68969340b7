"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  table.querySelectorAll("th[data-kind]").forEach((head) => {
    const at = head.cellIndex, isNumber = head.dataset.kind === "num";
    const button = document.createElement("button");
    button.type = "button";
    while (head.firstChild) button.append(head.firstChild);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th[aria-sort]").forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[at].dataset.sort;
      const rows = [...body.rows].sort((a, b) => {
        const one = key(a), other = key(b);
        if (one === "" || other === "") return (one === "") - (other === "");
        const order = isNumber ? one - other : one.localeCompare(other);
        return down ? -order : order;
      });
      body.append(...rows);
    });
  });
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
