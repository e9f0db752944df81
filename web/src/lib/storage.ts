/** What this browser remembers for its reader. Without storage (a private window) nothing is remembered, and all works. */

export function remembered(key: string): string | null {
  try {
    return localStorage.getItem(`rota.${key}`);
  } catch {
    return null;
  }
}

export function remember(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`rota.${key}`);
    else localStorage.setItem(`rota.${key}`, value);
  } catch {
    // There is nowhere to keep it.
  }
}
