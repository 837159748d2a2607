"use strict";

// Asks VS Code's JSON language service. Reads {schema, text} from standard input, where ¦ in the text is the cursor,
// and writes {completions, hover, diagnostics}.

const { getLanguageService, TextDocument } = require("vscode-json-languageservice");

async function main() {
  const { schema, text } = JSON.parse(require("fs").readFileSync(0, "utf8"));
  const offset = Math.max(text.indexOf("¦"), 0);
  const service = getLanguageService({});
  service.configure({ validate: true, schemas: [{ uri: "schema:it", fileMatch: ["*.json"], schema }] });
  const document = TextDocument.create("file:///tile.json", "json", 1, text.replace("¦", ""));
  const parsed = service.parseJSONDocument(document);
  const position = document.positionAt(offset);
  const [list, hover, diagnostics] = await Promise.all([
    service.doComplete(document, position, parsed),
    service.doHover(document, position, parsed),
    service.doValidation(document, parsed, { schemaRequest: "error", comments: "ignore" }),
  ]);
  const plain = (said) => (typeof said === "string" ? said : (said?.value ?? ""));
  const answer = {
    completions: (list?.items ?? []).map((item) => [item.label, plain(item.documentation)]),
    hover: [hover?.contents ?? []].flat().map(plain),
    diagnostics: diagnostics.map((one) => [document.getText(one.range), one.message]),
  };
  process.stdout.write(JSON.stringify(answer));
}

main();
