/** A self-contained HTML page that fetches nothing and runs no script. */
import { escapeXml } from '../../pictures/picture/svg.ts'

/** A section of a page; its contents are HTML. */
export interface Section {
  readonly title: string
  readonly content: readonly string[]
}

const STYLE = `
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 1160px; padding: 24px 28px 48px; background: #ffffff; color: #222222;
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 36px 0 10px; padding-bottom: 4px; border-bottom: 1px solid #d8d8d8; }
h3 { font-size: 15px; margin: 18px 0 6px; }
p { margin: 8px 0; max-width: 80ch; }
p.lead { font-size: 17px; }
p.note { color: #555555; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 20px; margin: 12px 0; }
dt { color: #555555; }
dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 16px; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 12px; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
th { font-weight: 600; border-bottom-color: #999999; white-space: nowrap; }
pre { background: #f6f8fa; border: 1px solid #e4e4e4; border-radius: 4px; padding: 10px 14px; overflow-x: auto;
  font: 13px/1.45 ui-monospace, monospace; }
svg { max-width: 100%; height: auto; }
@media print { h2 { break-after: avoid; } svg, table, pre { break-inside: avoid; } }
`

/** Content security policy of the page: its own styles, nothing else. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'"

/** @param lead HTML below the title */
export const page = (title: string, lead: readonly string[], sections: readonly Section[]): string =>
  `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeXml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escapeXml(title)}</h1>
${lead.join('\n')}
${sections.map((s) => `<section>\n<h2>${escapeXml(s.title)}</h2>\n${s.content.join('\n')}\n</section>`).join('\n')}
</body>
</html>
`

export const paragraph = (text: string, kind?: 'lead' | 'note'): string =>
  `<p${kind ? ` class="${kind}"` : ''}>${escapeXml(text)}</p>`

export const heading = (text: string): string => `<h3>${escapeXml(text)}</h3>`

/** Table of names and values. */
export const facts = (rows: readonly (readonly [name: string, value: string])[]): string =>
  `<dl>\n${rows.map(([name, value]) => `<dt>${escapeXml(name)}</dt><dd>${escapeXml(value)}</dd>`).join('\n')}\n</dl>`

/** Horizontal scrolling for content wider than the page. */
export const scrollable = (html: string): string => `<div class="wide">${html}</div>`

export const sideBySide = (...html: readonly string[]): string =>
  `<div class="beside">${html.map((h) => `<div>${h}</div>`).join('\n')}</div>`
