/** The CSP nonce of this page: lets its scripts add styles. */
export const cspNonce = document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.nonce ?? "";
