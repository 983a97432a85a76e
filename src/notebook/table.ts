/** Tables: rows of values by column. */
import { expectArgument, expectOptions } from '../ast/diagnostics/expect-argument.ts'
import { alignedColumns } from '../ast/print/message-text.ts'
import { escapeXml } from '../pictures/picture/svg.ts'
import { CellOutput } from './display.ts'
import { formatter, isMissing } from './numbers.ts'

/** Values by column; missing values and `null` are shown as a dash. */
export type Row = Readonly<Record<string, unknown>>

export interface TableOptions {
  /** Columns in display order; default: all columns of any row, in order of first occurrence. */
  readonly columns?: readonly string[] | undefined
  /** Significant digits of non-integers: the decimals of a column give its median this many digits. Default: 3. */
  readonly digits?: number | undefined
  /** Maximum number of rows shown; the number of further rows is stated. Default: 100. */
  readonly limit?: number | undefined
}

class Table extends CellOutput {
  readonly #names: readonly string[]
  readonly #cells: readonly (readonly string[])[]
  /** True for numeric columns. */
  readonly #numeric: readonly boolean[]
  readonly #hiddenRows: number

  constructor(rows: readonly Row[], { columns, digits = 3, limit = 100 }: TableOptions) {
    super()
    this.#names = columns ?? [...new Set(rows.flatMap((r) => Object.keys(r)))]
    const shownRows = rows.slice(0, limit)
    const texts = this.#names.map((name) => {
      const values = shownRows.map((r) => r[name])
      return values.map(formatter(values, digits))
    })
    this.#numeric = this.#names.map((name) =>
      shownRows.every(
        (r) => isMissing(r[name]) || typeof r[name] === 'number' || typeof r[name] === 'bigint',
      ),
    )
    this.#cells = shownRows.map((_, k) => texts.map((column) => column[k]!))
    this.#hiddenRows = rows.length - shownRows.length
  }

  override html(): string {
    const cell = (tag: 'th' | 'td') => (text: string, k: number) =>
      `<${tag} style="text-align:${this.#numeric[k] ? 'right' : 'left'}">${escapeXml(text)}</${tag}>`
    const row = (tag: 'th' | 'td', texts: readonly string[]) => `<tr>${texts.map(cell(tag)).join('')}</tr>`
    const note = this.#hiddenRows > 0 ? `\n<p>${this.#hiddenText()}</p>` : ''
    return `<table>
<thead>${row('th', this.#names)}</thead>
<tbody>
${this.#cells.map((texts) => `${row('td', texts)}\n`).join('')}</tbody>
</table>${note}`
  }

  override toString(): string {
    const lines = [this.#names, ...this.#cells]
    return [
      ...alignedColumns(lines, (k) => this.#numeric[k]!),
      ...(this.#hiddenRows > 0 ? [this.#hiddenText()] : []),
    ].join('\n')
  }

  #hiddenText(): string {
    return `… and ${this.#hiddenRows} more rows`
  }
}

/**
 * Rows as a table: numbers are right-aligned with the decimals of their column; lists are joined by commas. Shown as HTML, or
 * as aligned text where HTML is unavailable.
 * @throws SptError `api/argument`, `api/unknown-option`
 */
export function table(rows: readonly Row[], options: TableOptions = {}): CellOutput {
  expectOptions('table', options, ['columns', 'digits', 'limit'])
  expectArgument(Array.isArray(rows), 'the data', rows, 'a list of rows: values by column')
  return new Table(rows, options)
}
