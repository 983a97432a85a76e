/** Operands of formats: the sizes, lists and sets that are given with a tensor in addition to its coordinates. */
import { type Diagnostic, fail, invariant } from '../ast/diagnostics/diagnostic.ts'
import type { GivenList } from '../columns/frame-knowledge.ts'
import type { Param } from '../ir/coordinates/stage1.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { freeVars } from '../ir/expressions/expr-tree.ts'
import type { Instance } from '../ir/formats/format.ts'
import { segmentsOf } from '../ir/formats/format-tables.ts'
import { isFloat } from '../ir/values/dtype.ts'
import { evaluate } from '../ir/values/evaluate.ts'

export interface FormatOperands {
  readonly sizes: ReadonlyMap<string, number>
  /** Extents by the names of the replaced axes. */
  readonly extents: ReadonlyMap<string, number>
  /** Ascending lists, by name. */
  readonly lists: ReadonlyMap<string, Int32Array>
  /** One coordinate array for each replaced axis, by name of the set. */
  readonly sets: ReadonlyMap<string, readonly Int32Array[]>
}

/** The operands that a format uses: others may share a name with one of its own arrays. */
export function operandsUsedBy(instance: Pick<Instance, 'given'>, given: FormatOperands): FormatOperands {
  const names = new Set(instance.given.map((g) => g.name))
  const pickUsed = <T>(byName: ReadonlyMap<string, T>): Map<string, T> =>
    new Map([...byName].filter(([name]) => names.has(name)))
  const { sizes, extents, lists, sets } = given
  return { sizes, extents, lists: pickUsed(lists), sets: pickUsed(sets) }
}

export function givenList({ lists }: Pick<FormatOperands, 'lists'>, name: string): GivenList {
  const values = lists.get(name)
  invariant(values, `the list ${name} comes with the data`)
  return { name, values }
}

/** The operands with the number of segments of each list added to the sizes. */
export function withSegments(given: FormatOperands): FormatOperands {
  const sizes = new Map(given.sizes)
  for (const [name, list] of given.lists) sizes.set(segmentsOf(name), list.length - 1)
  const { extents, lists, sets } = given
  return { sizes, extents, lists, sets }
}

/** The value of `what`, an expression over sizes. @throws SptError `bind/missing-size` */
export function sizeIn(e: Expr, sizes: ReadonlyMap<string, number>, what: string): number {
  const missing = [...freeVars(e)].find((v) => !sizes.has(v))
  if (missing !== undefined) fail(missingValue({ name: missing, of: `(${what} depends on it)` }))
  return evaluate(e, sizes)
}

// The diagnostic for a size or scalar parameter without a value.

type Missing = Partial<Pick<Param, 'kind' | 'dtype'>> & {
  readonly name: string
  /** End of the message: `of kernel k`, `(schedule auto depends on it)`. */
  readonly of: string
  /** Inputs whose shapes determine the size. */
  readonly inputs?: readonly string[]
}

/** It has no span, because the value is missing in a call, not in the program. */
export function missingValue({ name, kind = 'size', dtype, of, inputs = [] }: Missing): Diagnostic {
  const example = kind === 'size' ? '64' : dtype === 'bool' ? 'true' : dtype && isFloat(dtype) ? '0.5' : '1'
  return {
    code: kind === 'size' ? 'bind/missing-size' : 'bind/missing-scalar',
    message: `missing ${kind} ${name} ${of}`,
    hint: [`give ${name}: ${example}`, ...inputs.map((input) => `bind ${input}`)].join(', or '),
    commandHint: [`--size ${name}=${example}`, ...inputs.map((input) => `--bind ${input}=PATH`)].join(
      ', or ',
    ),
  }
}
