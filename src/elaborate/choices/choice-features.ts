/** `has(…)` in choices: a feature of the device, in the syntax of the `needs` of instructions. */

import type * as Ast from '../../ast/nodes/nodes.ts'
import { appliedName } from '../../ast/print/applied-name.ts'
import type { Report } from '../diagnostics.ts'
import { EXPERIMENTAL } from '../instructions/target-requirements.ts'

type Argument = 'number' | 'type'

/** Features of devices, with the kinds of their arguments. All features that `needs` may name are included. */
const FEATURES: ReadonlyMap<string, readonly Argument[]> = new Map([
  ['f16', []],
  ['bf16', []],
  ['f64', []],
  ['subgroups', []],
  ['timestamp_query', []],
  ['async_copy', []],
  ['clusters', []],
  ['tensor_maps', []],
  ['chromium_experimental_subgroup_matrix', []],
  ['lanes', ['number']],
  ['subgroup_size', ['number']],
  ['subgroup_matrix', ['number', 'number', 'number', 'type', 'type']],
])

export const FEATURE_WORDS: readonly string[] = [...FEATURES.keys()]

const TYPES: readonly string[] = ['f16', 'f32', 'f64', 'bf16', 'i8', 'u8', 'i32', 'u32']

/** Returns a feature as devices list it: `subgroup_matrix(16, 16, 16, f16, f32)`. */
export const featureText: (name: string, args: readonly string[]) => string = appliedName

/** Returns the feature of a call of `has`; null after a reported error. */
export function featureOf(e: Ast.Call, report: Report): string | null {
  const [feature] = e.args
  const written = feature?.kind === 'name' || feature?.kind === 'call' ? feature : null
  if (!written || e.by || e.args.length !== 1)
    return report.error({
      code: 'check/feature',
      message: 'has takes a single feature of the device',
      span: e.span,
      expected: 'has(f16), has(subgroup_size(32))',
    })
  const name = written.kind === 'name' ? written.name : written.fn.name
  const params = FEATURES.get(name) ?? (EXPERIMENTAL.test(name) ? [] : null)
  if (!params)
    return report.error({
      code: 'check/feature',
      message: `no device has a feature ${name}`,
      span: written.kind === 'name' ? written.span : written.fn.span,
      lookup: { name, candidates: FEATURE_WORDS },
      expected: FEATURE_WORDS.join(', '),
    })
  const args = written.kind === 'call' ? written.args : []
  const texts = args.map((a) => argumentOf(a, report))
  if (texts.some((t) => t === null)) return null
  const isRight =
    params.length === args.length && params.every((p, k) => (p === 'number') === (args[k]!.kind === 'number'))
  if (isRight && !(written.kind === 'call' && written.by)) return featureText(name, texts as string[])
  return report.error({
    code: 'check/feature',
    message: params.length === 0 ? `${name} takes no arguments` : `wrong arguments of ${name}`,
    span: written.span,
    expected: featureText(
      name,
      params.map((p) => (p === 'number' ? 'a number' : 'a type')),
    ),
  })
}

/** Returns a number or a type as in the device's own list; null after a reported error. */
function argumentOf(e: Ast.Expr, report: Report): string | null {
  if (e.kind === 'number' && !e.float) return String(e.value)
  if (e.kind === 'name' && TYPES.includes(e.name)) return e.name
  return report.error({
    code: 'check/feature',
    message: 'this is neither a number nor a type',
    span: e.span,
    ...(e.kind === 'name'
      ? { lookup: { name: e.name, candidates: TYPES } }
      : { expected: 'a number or a type, as in subgroup_matrix(16, 16, 16, f16, f32)' }),
  })
}
