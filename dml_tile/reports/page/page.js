
"use strict";

const collator = new Intl.Collator("en", { numeric: true });

function makeSortable(table) {
  const bodies = [...table.tBodies];
  const heads = [...table.tHead.rows[0].cells];
  const key = (body, column) => {
    const cell = body.rows[0].cells[column];
    return cell.dataset.sort ?? cell.textContent;
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const descends = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descends ? "descending" : "ascending");
      const keyed = bodies.map((body) => [key(body, column), body]);
      keyed.sort(([one], [other]) => collator.compare(one, other) * (descends ? -1 : 1));
      table.append(...keyed.map(([, body]) => body));
    });
  });
}

function makeFilterable(form, table) {
  const tiles = [...table.tBodies].map((body) => ({ body, text: body.textContent.toLowerCase() }));
  const fits = ({ body, text }, wanted) =>
    text.includes(wanted.text.trim().toLowerCase()) &&
    (!wanted.verdict || wanted.verdict === body.dataset.verdict) &&
    (!wanted.target || wanted.target === body.dataset.target) &&
    (!wanted.rule || body.dataset.rules.split(" ").includes(wanted.rule));
  const filter = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const shown = tiles.filter((tile) => !(tile.body.hidden = !fits(tile, wanted)));
    form.querySelector("[role=status]").textContent = `${shown.length} of ${tiles.length} shown`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
}

function makeFoldable(button, table) {
  const details = [...table.querySelectorAll("details")];
  const areOpen = () => details.every((one) => one.open);
  const label = () => (button.textContent = areOpen() ? "Close all" : "Open all");
  button.addEventListener("click", () => {
    const opens = !areOpen();
    details.forEach((one) => (one.open = opens));
    label();
  });
  table.addEventListener("toggle", label, true);
  button.hidden = details.length === 0;
  label();
}

document.querySelectorAll("table").forEach(makeSortable);
const tiles = document.querySelector("#tiles table");
if (tiles) {
  const form = document.getElementById("filters");
  makeFilterable(form, tiles);
  makeFoldable(form.querySelector("button"), tiles);
}
