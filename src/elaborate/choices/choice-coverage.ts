/** The fill ratio of a tensor in a format, as a statistic for conditions: `fill_ratio(W, tiles(g, 64))`. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { FormatParam } from '../../ir/formats/format.ts'
import { report } from '../diagnostics.ts'
import { composeInPlace, singleUse } from '../formats/format-expressions.ts'
import { type FindFormat, formatArguments, forOrder } from '../formats/format-uses.ts'
import { argumentOver, parameters } from '../schedules/schedule-params.ts'
import { EXPERIMENTAL, FEATURE_WORDS, FEATURES, featureText } from './device-features.ts'
import type { Coverage } from './fill-ratios.ts'

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

const TYPES: readonly string[] = ['f16', 'f32', 'f64', 'bf16', 'i8', 'u8', 'i32', 'u32']

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
