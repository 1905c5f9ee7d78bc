/** Dark, light, or as the system has it: remembered for this browser. */

export const themes = ["system", "dark", "light"] as const;
type Theme = (typeof themes)[number];

const key = "lcm-theme";

export function currentTheme(): Theme {
  const name = document.documentElement.dataset["theme"];
  return themes.find((theme) => theme === name) ?? "system";
}

export function setTheme(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
  try {
    localStorage.setItem(key, theme);
  } catch {
    // A browser that keeps nothing forgets the choice.
  }
}

export function restoreTheme(): void {
  try {
    const kept = themes.find((theme) => theme === localStorage.getItem(key));
    if (kept !== undefined) setTheme(kept);
  } catch {
    // As above.
  }
}
