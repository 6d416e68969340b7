"""Documents for tests: a conflict in a town, the launch of a product, a strike, and a writer of PDF."""

from __future__ import annotations

TOWN = """# Eastport plans to close the old bridge

EASTPORT, 12 March - The Eastport Town Council voted on Tuesday to close the Old Bridge to cars from September, in a
decision that has split the harbour town. Mayor Helen Marsh called the closure "the only responsible choice" after
engineers found cracks in two of its piers.

"We cannot wait for somebody to get hurt," Marsh told a packed meeting at the town hall. "The repair would cost
4.2 million pounds, and we simply do not have the money."

But shopkeepers on Harbour Street fear for their livelihoods. Tom Brennan, 52, who owns the bakery next to the bridge,
said that he would lose half of his customers. "They are killing this street," he said. "Nobody asked us."
Brennan has collected 1,400 signatures against the closure together with Aisha Rahman, a pharmacist and chair of the
Harbour Street Traders' Association (HSTA). Rahman accused the council of hiding a second report.

The civil engineer Dr Paul Novak, who examined the bridge, said the bridge is unsafe for heavy vehicles. "The cracks are
real, and they are growing," he said. Novak warned that a closure could last ten years.

Cyclists welcomed the plan. Green Eastport, a campaign group, praised the council for its courage. "A quiet bridge will
bring the harbour back to life," said Lena Fischer, spokeswoman for Green Eastport. She hopes that cafes open on it.

Residents of the north side are divided. Some parents support the closure because children could walk to school safely,
others worry about the ambulance. The Eastport Hospital said that ambulances would need six minutes longer.

Councillor James Okoro voted against the plan. "We were told on Friday and asked to decide on Tuesday," said Okoro, who
demands a referendum. The Traders' Association announced a protest march for Saturday.
"""

PRODUCT = """# Halden unveils the Murmur, a speaker that never stops listening

BERLIN - Consumer electronics maker Halden Audio launched a smart speaker called Murmur on Monday. Unlike its rivals the
Murmur has no wake word: it listens all the time and joins conversations when it thinks it can help.

"People are tired of commanding machines," said Ingrid Halden, founder and chief executive of Halden Audio. "Murmur is
the first device that simply takes part." The company says that all speech is processed on the device and nothing
leaves the house. The speaker costs 249 euros and goes on sale in May.

Privacy advocates are alarmed. The Digital Rights Forum (DRF) called for a boycott. "A microphone that is always on in
every living room is surveillance, whatever the company promises," said Marek Zielinski, a lawyer at the Digital Rights
Forum. He announced that the group would file a complaint with the regulator.

Early reviewers disagree with each other. Tech journalist Amara Nwosu wrote that the Murmur is "the most useful gadget
of the decade". Her colleague Daniel Reyes, who tested it for two weeks, returned his: "It interrupted an argument with
my wife to offer a recipe. That was creepy."

Parents asked whether children can be recorded. Pediatrician Dr. Soo-jin Park warned that toddlers already talk to
machines too much. Investors welcomed the launch; shares of Halden rose by 6 percent. Analyst Robert Klein of Nordbank
expects 400,000 units in the first year.
"""

STRIKE = """Nurses at St. Brigid's Hospital walk out over staffing

DUBLIN (Reuters) - More than 600 nurses at St. Brigid's Hospital began a three-day strike on Monday, accusing
management of ignoring repeated warnings about unsafe staffing levels on night shifts.

"We are not asking for the moon," said Siobhan Keane, a ward sister with 22 years' experience who chairs the
local branch of the Irish Nurses' Union (INU). "We are asking not to be alone with fourteen patients at three
in the morning."

The hospital's chief executive, Dr. Martin Doyle, called the strike "deeply regrettable" and said emergency
care would continue. "Nobody in management wants this," he told reporters. Doyle has offered to hire 40 nurses
by the summer, an offer the union rejected on Friday.

Health Minister Orla Brady urged both sides to return to talks. The opposition accused her of hiding. "She has
been minister for two years and has never met these nurses," said Fine Gael's Padraig Nolan.

Patients had mixed feelings. Mary Byrne, 78, whose hip operation was cancelled, said she supported the nurses.
"They were so kind to me. I can wait," she said. But Kevin Walsh, whose son needs weekly treatment, is
furious. "It's children who pay for this," said Walsh.

The Irish Patients' Association said it understood the anger but opposed the strike. According to Prof. Eva
Lindqvist, a health economist at Trinity College, short strikes rarely harm patients."""

CHINESE = """东港市议会周二投票决定关闭老桥。市长陈海伦表示，这是唯一负责任的选择。

面包店老板王汤姆说：“他们正在毁掉这条街。”他已经收集了一千四百个签名，反对关闭老桥。"""

ASKED_TOWN = "How will the people of Eastport react to the closure of the old bridge?"
ASKED_PRODUCT = "How will customers react to the launch of the Murmur speaker by Halden Audio?"


def make_pdf(pages: list[list[str]]) -> bytes:
    """Make a PDF with a page for each list of lines."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        shown = "".join(f"({_escape(line)}) Tj T*\n" for line in lines)
        stream = f"BT /F1 11 Tf 14 TL 50 780 Td\n{shown}ET"
        fonts = "/Resources << /Font << /F1 3 0 R >> >>"
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] {fonts} /Contents {5 + 2 * number} 0 R >>"
        objects += [page, f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream"]
    text, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(text))
        text += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    start = len(text)
    text += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    text += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    return text.encode("latin-1")


def _escape(line: str) -> str:
    return line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
