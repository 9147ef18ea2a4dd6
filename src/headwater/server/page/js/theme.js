// The chosen theme, before anything is drawn (so this is no module): a dark page never flashes white.
try {
  const chosen = localStorage.getItem("headwater-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that keeps nothing follows the system's theme.
}
