// Export of tables: copied to the clipboard, or saved as a CSV file.

import { make } from "./dom.js";

// Rows of texts and numbers, the first with the column names; numbers keep all their digits.
export function csv(rows) {
  const cell = (value) => {
    const text = String(value ?? "");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

export function tabs(rows) {
  return rows.map((row) => row.map((value) => String(value ?? "").replace(/[\t\n\r]+/g, " ")).join("\t")).join("\n");
}

// Buttons to copy and to save the result of `rows`, computed when pressed; `name` is the file name.
export function exportButtons(name, rows) {
  const said = make("span", { class: "hint", role: "status" });
  const copy = async () => {
    const text = tabs(rows());
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // The browser may deny clipboard access to a page from a file.
      const box = make("textarea", { class: "aside", "aria-hidden": "true" });
      document.body.append(box);
      box.value = text;
      box.select();
      document.execCommand("copy");
      box.remove();
    }
    said.textContent = "Copied";
    setTimeout(() => { said.textContent = ""; }, 1500);
  };
  const save = () => {
    const url = URL.createObjectURL(new Blob([csv(rows())], { type: "text/csv" }));
    make("a", { href: url, download: `${name}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  return make("span", { class: "take" },
    make("button", { type: "button", title: "Copy the table for a spreadsheet", onclick: copy }, "Copy"),
    make("button", { type: "button", title: "Save the table as a CSV file", onclick: save }, "CSV"), said);
}
