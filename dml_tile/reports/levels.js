
"use strict";

const form = document.getElementById("filters");
const field = form.querySelector("input");
const found = [...document.querySelectorAll("section.operator")].map((section) => ({
  section,
  name: section.id,
  words: [...new Set(section.textContent.toUpperCase().split(/[^\w]+/))],
}));

function filter() {
  const wanted = field.value.toUpperCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const { section, name, words } of found) {
    const fits = wanted.every((word) => name.includes(word) || words.some((other) => other.startsWith(word)));
    section.hidden = !fits;
    shown += fits;
  }
  form.querySelector("[role=status]").textContent = `${shown} of ${found.length} shown`;
}

function showTarget() {
  const section = document.getElementById(location.hash.slice(1));
  if (!section?.hidden) return;
  field.value = "";
  filter();
  section.scrollIntoView();
}

form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", showTarget);
form.hidden = false;
filter();
