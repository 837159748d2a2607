
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
    button.title = "Sort";
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
  const tiles = [...table.tBodies].map((body) => {
    const details = document.getElementById(body.dataset.row);
    const text = (body.textContent + (details?.textContent ?? "")).toLowerCase();
    return { body, details, text, verdicts: body.dataset.verdicts.split("|"), rules: body.dataset.rules.split(" ") };
  });
  const fits = ({ text, verdicts, rules }, wanted) =>
    text.includes(wanted.text.trim().toLowerCase()) &&
    (!wanted.verdict || verdicts.includes(wanted.target ? `${wanted.verdict} at ${wanted.target}` : wanted.verdict)) &&
    (!wanted.rule || rules.includes(wanted.rule));
  const filter = () => {
    const wanted = Object.fromEntries(new FormData(form));
    let shown = 0;
    for (const tile of tiles) {
      const isShown = fits(tile, wanted);
      shown += isShown;
      tile.body.hidden = !isShown;
      if (tile.details) tile.details.hidden = !isShown;
    }
    form.querySelector("[role=status]").textContent = `${shown} of ${tiles.length} shown`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
}

function makeFoldable(button, details) {
  const areOpen = () => details.every((one) => one.open);
  const label = () => (button.textContent = areOpen() ? "Close all" : "Open all");
  button.addEventListener("click", () => {
    const opens = !areOpen();
    details.forEach((one) => (one.open = opens));
    label();
  });
  details.forEach((one) => one.addEventListener("toggle", label));
  button.hidden = details.length === 0;
  label();
}

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}

document.querySelectorAll("table").forEach(makeSortable);
for (const form of document.querySelectorAll("form")) {
  makeFilterable(form, form.parentElement.querySelector("table"));
}
const foldAll = document.querySelector("#filters button");
if (foldAll) makeFoldable(foldAll, [...document.querySelectorAll("#findings details")]);
addEventListener("hashchange", openTarget);
openTarget();
