/** Evaluation of coordinate maps on samples, in 32 bits as in kernels. */
import { HIGHEST, LOWEST } from '../analysis/integers/interval.ts'
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { allocate } from './allocate.ts'
import { CHUNK, compile, type Step } from './expression-program.ts'

export interface MapInput {
  readonly map: readonly Expr[]
  /** The variables of `map`, in the order of the columns. */
  readonly inputs: readonly string[]
}

/**
 * `result[k][e]` is `map[k]` at `(columns[0][e], columns[1][e], …)`. @throws SptError `format/map-overflow` if an
 * intermediate result exceeds 32 bits, `format/map-expression`, `format/unknown-name`
 */
export function applyMap({ map, inputs }: MapInput, columns: readonly Int32Array[]): Int32Array[] {
  const n = columns[0]?.length ?? 0
  const { steps, outputs } = compile(map, {
    column: (name) => columns[inputs.indexOf(name)],
    size: () => undefined,
    table: () => undefined,
    range: () => undefined,
    all: () => ({ variables: inputs, tables: [] }),
  })
  const results = map.map(() => allocate(n, 'mapped coordinates'))
  for (let lo = 0; lo < n; lo += CHUNK) {
    const length = Math.min(CHUNK, n - lo)
    for (const step of steps) {
      step.run(lo, length)
      if (!step.fits) checkWords(step, inputs, columns, lo, length)
    }
    for (const [k, out] of outputs.entries()) results[k]!.set(out.subarray(0, length), lo)
  }
  return results
}

/** `(i, j) = (3, 4)`, for messages. */
export function point(names: readonly string[], columns: readonly Int32Array[], e: number): string {
  return `(${names.join(', ')}) = (${columns.map((c) => c[e]).join(', ')})`
}

/** Checks that the results of a step for entries `lo … lo + n - 1` fit 32 bits. @throws `format/map-overflow` */
export function checkWords(
  { expr, out }: Pick<Step, 'expr' | 'out'>,
  names: readonly string[],
  columns: readonly Int32Array[],
  lo: number,
  n: number,
): void {
  for (let e = 0; e < n; e++) {
    if (out[e]! >= LOWEST && out[e]! <= HIGHEST) continue
    failWith(
      'format/map-overflow',
      `at ${point(names, columns, lo + e)} an intermediate value is ${out[e]}`,
      {
        ...(expr.span && { span: expr.span }),
        expected: 'intermediate results that fit into 32 bits, as in kernels',
        hint: 'divide before multiplying, or map to more axes',
      },
    )
  }
}
