/** Reads and writes local storage. Without storage (a private window) nothing is kept, and no call fails. */

export function readStored(key: string): string | null {
  try {
    return localStorage.getItem(`rota.${key}`);
  } catch {
    return null;
  }
}

export function writeStored(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`rota.${key}`);
    else localStorage.setItem(`rota.${key}`, value);
  } catch {
    // No storage available.
  }
}
