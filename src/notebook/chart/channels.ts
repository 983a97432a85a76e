/** Reads and checks the columns of the rows that a chart draws. */

import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import type { Row } from '../table.ts'
import type { Datum } from './scale.ts'

/** @throws SptError `notebook/no-rows`, `api/argument`, `api/unknown-option` */
export function checkChart(
  chart: string,
  rows: readonly Row[],
  options: object,
  ownOptions: readonly string[],
): void {
  expectOptions<Record<string, unknown>>(chart, { ...options }, [
    'x',
    'y',
    'title',
    'width',
    'labels',
    ...ownOptions,
  ])
  expectArgument(Array.isArray(rows), 'the data', rows, 'a list of rows: values by column')
  expectRows(rows)
}

/** @throws SptError `notebook/no-rows` */
export function expectRows(rows: readonly unknown[]): void {
  if (rows.length === 0)
    failWith('notebook/no-rows', 'a chart of no rows', {
      expected: 'a row, at least',
      hint: 'table shows an empty list',
    })
}

/**
 * The values of a column: finite numbers or strings.
 * @throws SptError `notebook/no-column`, `notebook/value`
 */
export function channel(rows: readonly Row[], name: string): Datum[] {
  return rows.map((row, k) => {
    const value = row[name]
    if (typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value))) return value
    if (!Object.hasOwn(row, name))
      return failWith('notebook/no-column', `row ${k} has no column ${name}`, {
        lookup: { name, candidates: Object.keys(row) },
      })
    return failWith('notebook/value', `${name} of row ${k} is ${String(value)}`, {
      expected: 'a finite number or a text',
      hint: 'leave such rows out',
    })
  })
}

/** The values of a column of numbers. @throws SptError as `channel` */
export function numbers(rows: readonly Row[], name: string): number[] {
  return channel(rows, name).map((value, k) =>
    typeof value === 'number'
      ? value
      : failWith('notebook/value', `${name} of row ${k} is "${value}"`, { expected: 'a number' }),
  )
}
