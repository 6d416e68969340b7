/** Light or dark: what the system says, unless the reader chose. */

export type ThemeChoice = "system" | "light" | "dark";

const KEY = "shoal.theme";

function readChoice(): ThemeChoice {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

class Theme {
  choice = $state<ThemeChoice>(readChoice());
  private systemIsDark = $state(matchMedia("(prefers-color-scheme: dark)").matches);
  readonly isDark = $derived(this.choice === "system" ? this.systemIsDark : this.choice === "dark");
  private colours = new Map<string, string>();

  constructor() {
    const query = matchMedia("(prefers-color-scheme: dark)");
    query.addEventListener("change", (event) => {
      this.systemIsDark = event.matches;
      this.apply();
    });
    this.apply();
  }

  choose(choice: ThemeChoice): void {
    this.choice = choice;
    if (choice === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, choice);
    this.apply();
  }

  /** The value of a colour token now. Reading it makes a drawing follow the theme. */
  colour(name: `--${string}`): string {
    void this.isDark;
    let value = this.colours.get(name);
    if (value === undefined) {
      value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
      this.colours.set(name, value);
    }
    return value;
  }

  private apply(): void {
    document.documentElement.dataset["theme"] = this.isDark ? "dark" : "light";
    this.colours.clear();
  }
}

export const theme = new Theme();
