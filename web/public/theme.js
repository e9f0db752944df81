// Kept apart from the application, so that a dark page does not flash white while that loads.
try {
  const chosen = localStorage.getItem("rota.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // No storage (a private window, a policy): the system's preference holds.
}
