/** What lets this page's own scripts add styles; the server makes a new one for every page. */
export const nonce = document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.nonce ?? "";
