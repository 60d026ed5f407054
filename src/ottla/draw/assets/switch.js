// The switch between light, dark and what the system has.
"use strict";
(() => {
  const themes = ["", "light", "dark"];
  const themeWords = { "": "as the system", light: "light", dark: "dark" };
  const themeSigns = { "": "◐", light: "☀", dark: "☾" };

  function setUpTheme(button) {
    const root = document.documentElement;
    const show = () => {
      const theme = root.dataset.theme || "";
      button.textContent = themeSigns[theme];
      button.setAttribute("aria-label", `Colours: ${themeWords[theme]}`);
      button.title = `Colours: ${themeWords[theme]}`;
    };
    button.hidden = false;
    show();
    button.addEventListener("click", () => {
      const theme = themes[(themes.indexOf(root.dataset.theme || "") + 1) % themes.length];
      if (theme) root.dataset.theme = theme;
      else delete root.dataset.theme;
      show();
      try {
        if (theme) localStorage.setItem("ottla-theme", theme);
        else localStorage.removeItem("ottla-theme");
      } catch {
        // No storage here: the choice lasts as long as the page.
      }
    });
  }

  document.querySelectorAll(".theme").forEach(setUpTheme);
})();
