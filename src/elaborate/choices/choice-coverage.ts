/** The fill ratio of a tensor in a format, as a statistic for conditions: `fill_ratio(W, tiles(g, 64))`. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { appliedFormat, appliedName } from '../../ast/print/message-text.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { constant, type Expr } from '../../ir/expressions/expr.ts'
import type { FormatParam, OrderedFormat } from '../../ir/formats/format.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import { report } from '../diagnostics.ts'
import { composeInPlace, singleUse } from '../formats/format-expressions.ts'
import { type FindFormat, formatArguments, forOrder } from '../formats/format-uses.ts'
import { EXPERIMENTAL } from '../instructions/target-requirements.ts'
import { argumentOver, parameters } from '../schedules/schedule-params.ts'

/**
 * A fill ratio: the number of slots for values that the format has for the tensor, padding included, divided by the
 * number of elements of the tensor (f64).
 */
export interface Coverage {
  readonly kind: 'fill_ratio'
  readonly tensor: string
  readonly format: OrderedFormat
  /** The format's name in the text. */
  readonly called: string
  /** The arguments of the format: numbers over the parameters of the choice, or names of lists and sets. */
  readonly args: readonly (Expr | string)[]
  /** True if schedules of the choice build the format at run time: the ratio is unknown before the first run. */
  readonly live?: boolean
  /** The span of the tensor's name. */
  readonly named: Span
  readonly span: Span
}

/** The text of the statistic, which is its name in values and messages. */
export const coverageText = (c: Coverage): string => `fill_ratio(${c.tensor}, ${formatText(c)})`

/** The format with its arguments. */
export const formatText = ({ format, called, args }: Coverage): string =>
  appliedFormat(
    called,
    format.params,
    args.map((a) => (typeof a === 'string' ? a : a.kind === 'const' ? String(a.value) : printExpr1(a))),
  )

export const withNumbers = (c: Coverage, value: (e: Expr) => number): Coverage => ({
  ...c,
  args: c.args.map((a) =>
    typeof a === 'string' || a.kind === 'const' ? a : constant(value(a), a.dtype, a.span),
  ),
})

/** The names that arguments of formats may use in a condition. */
export interface ArgumentNames {
  readonly names: readonly string[]
  /** A description of the names, for messages. */
  readonly what: string
}

export function coverageOf(
  e: Ast.Call,
  kernel: Kernel1,
  over: ArgumentNames,
  find: FindFormat,
): Coverage | null {
  const [of] = e.args
  const { parts } = e
  if (!parts || of?.kind !== 'name')
    return report('check/statistic', e.span, {
      message: 'fill_ratio takes a tensor and a format',
      expected:
        'the names of both with the arguments of the format, or several formats: fill_ratio(W, FORMAT(16) where (…) + FORMAT)',
    })
  const order = orderOf(of, kernel)
  const single = singleUse(parts)
  const made = single ? null : composeInPlace(parts, (name) => over.names.includes(name), find)
  const named = single ? find(single.format) : made?.format
  const format = named && order !== null && forOrder(named, order)
  if (!format) return null
  if (format.over.length !== order)
    return report('check/format-over', parts[0]!.format.span, {
      message: `format ${format.name} is over (${format.over.join(', ')}), and ${of.name} has ${order} ${order === 1 ? 'dimension' : 'dimensions'}`,
      expected: 'a format over as many dimensions',
    })
  const names = parameters(new Set(over.names), over.what, [])
  const number = (x: Ast.Expr, kind?: FormatParam['kind']): Expr | null =>
    argumentOver(names, x, kind === 'real' ? 'real' : 'integer')
  const args = single
    ? formatArguments(single, format, (x, p) => number(x, p.kind))
    : made!.args.map((x) => number(x))
  if (!args?.every((a) => a !== null)) return null
  const called = single?.format.name ?? format.name
  return { kind: 'fill_ratio', tensor: of.name, format, called, args, named: of.span, span: e.span }
}

function orderOf({ name, span }: Ast.Name, { name: own, buffers }: Kernel1): number | null {
  const buffer = buffers.find((b) => b.name === name)
  if (buffer) return buffer.axes.length
  return report('check/unknown-buffer', span, {
    message: `kernel ${own} has no buffer ${name}`,
    lookup: { name, candidates: buffers.map((b) => b.name) },
  })
}

// `has(…)` in choices: a feature of the device, in the syntax of the `needs` of instructions.

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

/** A feature as devices list it: `subgroup_matrix(16, 16, 16, f16, f32)`. */
export const featureText: (name: string, args: readonly string[]) => string = appliedName

export function featureOf(e: Ast.Call): string | null {
  const [feature] = e.args
  const written = feature?.kind === 'name' || feature?.kind === 'call' ? feature : null
  if (!written || e.by || e.args.length !== 1)
    return report('check/feature', e.span, {
      message: 'has takes a single feature of the device',
      expected: 'has(f16), has(subgroup_size(32))',
    })
  const name = written.kind === 'name' ? written.name : written.fn.name
  const params = FEATURES.get(name) ?? (EXPERIMENTAL.test(name) ? [] : null)
  if (!params)
    return report('check/feature', written.kind === 'name' ? written.span : written.fn.span, {
      message: `no device has a feature ${name}`,
      lookup: { name, candidates: FEATURE_WORDS },
      expected: FEATURE_WORDS.join(', '),
    })
  const args = written.kind === 'call' ? written.args : []
  const texts = args.map(argumentOf)
  if (texts.some((t) => t === null)) return null
  const isRight =
    params.length === args.length && params.every((p, k) => (p === 'number') === (args[k]!.kind === 'number'))
  if (isRight && !(written.kind === 'call' && written.by)) return featureText(name, texts as string[])
  return report('check/feature', written.span, {
    message: params.length === 0 ? `${name} takes no arguments` : `wrong arguments of ${name}`,
    expected: featureText(
      name,
      params.map((p) => (p === 'number' ? 'a number' : 'a type')),
    ),
  })
}

function argumentOf(e: Ast.Expr): string | null {
  if (e.kind === 'number' && !e.float) return String(e.value)
  if (e.kind === 'name' && TYPES.includes(e.name)) return e.name
  return report('check/feature', e.span, {
    message: 'this is neither a number nor a type',
    ...(e.kind === 'name'
      ? { lookup: { name: e.name, candidates: TYPES } }
      : { expected: 'a number or a type, as in subgroup_matrix(16, 16, 16, f16, f32)' }),
  })
}
