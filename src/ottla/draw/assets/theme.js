// Runs before anything is drawn, so that a page never flashes in the wrong colours.
try {
  const theme = localStorage.getItem("ottla-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage here: the system's colours it is.
}
