/**
 * Resolution of names in the conditions and arguments of choices: parameters, sizes, the device, and statistics of the
 * bound data.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { DEVICE_KINDS, type DeviceKind } from '../../backends/target.ts'
import { type Axis, hasIndptr, isDenseChain } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { variable } from '../../ir/expressions/expr.ts'
import { type Dtype, isWord, scalarType } from '../../ir/values/dtype.ts'
import { report, reportAll } from '../diagnostics.ts'
import type { Names } from '../expressions/expressions.ts'
import { plain, type Typed } from '../expressions/type-conversion.ts'
import type { FindFormat } from '../formats/format-uses.ts'
import { type ScheduleParam, scheduleParams, wrongArgument } from '../schedules/schedule-params.ts'
import { type ArgumentNames, coverageOf, featureOf } from './choice-coverage.ts'
import { type Coverage, coverageText } from './fill-ratios.ts'

/**
 * Numeric properties of the device, with their types: the compute capability of a CUDA device (9.0; 0 for other
 * devices), the number of SMs, and whether there is a cost model for its kind.
 */
const FIGURES = { capability: 'f64', processors: 'i32', cost_model: 'bool' } as const
const isFigure = (name: string): name is keyof typeof FIGURES => Object.hasOwn(FIGURES, name)

/**
 * A query of the device: whether it is of a kind, a numeric property, or whether it has a feature (`f16`, `lanes(32)`).
 */
export type DeviceQuestion =
  | { readonly kind: 'is'; readonly device: DeviceKind }
  | { readonly kind: keyof typeof FIGURES }
  | { readonly kind: 'has'; readonly feature: string }

/**
 * Statistics of a bound sparse tensor. For an axis with segments of variable length (one under each position of its
 * parent): the number of positions, the lengths of the longest and the shortest segment, the mean length (f64), the
 * number of empty segments, and the number of segments. For a tensor: `nnz`, the number of stored elements, and
 * `fill_ratio`, its fill ratio in a format.
 */
const AXIS_STATISTICS = ['count', 'longest', 'shortest', 'mean', 'empty', 'segments'] as const
export type AxisStatistic = (typeof AXIS_STATISTICS)[number]
export type Statistic =
  | { readonly kind: AxisStatistic; readonly axis: string }
  | { readonly kind: 'nnz'; readonly tensor: string }
  | Coverage

const STATISTICS: readonly string[] = [...AXIS_STATISTICS, 'nnz', 'fill_ratio']
const OPERATIONS = ['min', 'max', 'ceildiv', 'select', 'abs', 'i32', 'f64']
const FUNCTIONS: readonly string[] = [...OPERATIONS, 'has', ...STATISTICS]

const isDevice = (name: string): name is DeviceKind => (DEVICE_KINDS as readonly string[]).includes(name)

/** Describes the meaning that a name has here independent of the parameters; null if there is no such meaning. */
function meaningOf(name: string, kernel: Kernel1): string | null {
  const param = kernel.params.find((p) => p.name === name)
  if (param)
    return param.kind === 'size' ? `a size of kernel ${kernel.name}` : `a scalar of kernel ${kernel.name}`
  if (isDevice(name)) return 'a device'
  return isFigure(name) ? 'a figure of the device' : null
}

/**
 * The parameters of a choice or space. Reports names that have another meaning in conditions, and defaults that are
 * known not to be integers.
 */
export function decidedParams(c: Ast.Choice, kernel: Kernel1): readonly ScheduleParam[] {
  const params = scheduleParams(c)
  c.params.forEach(({ name, default: written }, k) => {
    refuseMeaning(name, kernel)
    const fallback = params[k]?.default
    if (written && fallback && !isWord(fallback.dtype))
      reportAll(wrongArgument('an integer', scalarType(fallback.dtype), written.span))
  })
  return params
}

export function refuseMeaning({ name, span }: Ast.Ident, kernel: Kernel1): void {
  const meaning = meaningOf(name, kernel)
  if (meaning)
    report('check/duplicate', span, {
      message: `${name} is ${meaning} where a schedule is chosen`,
      hint: 'choose another name for the parameter',
    })
}

/**
 * The names in a choice: parameters, sizes, devices and statistics. The used statistics and device queries are
 * recorded.
 */
export class ChoiceNames implements Names {
  readonly functions = FUNCTIONS
  readonly real = 'f64'
  readonly statistics = new Map<string, Statistic>()
  readonly device = new Map<string, DeviceQuestion>()
  readonly #kernel: Kernel1
  readonly #params: readonly string[]
  readonly #find: FindFormat
  readonly #formatNames: ArgumentNames
  readonly #axes: ReadonlyMap<string, Axis>

  /**
   * @param params names of integers @param formatNames names that arguments of formats may use: those of `params` whose
   * values are known before data are bound
   */
  constructor(
    kernel: Kernel1,
    params: readonly string[],
    find: FindFormat,
    formatNames: ArgumentNames = { names: params, what: 'parameters of the choice' },
  ) {
    this.#kernel = kernel
    this.#params = params
    this.#find = find
    this.#formatNames = formatNames
    this.#axes = new Map(kernel.axes.map((a) => [a.name, a]))
  }

  name(e: Ast.Name): Typed | null {
    if (this.#params.includes(e.name)) return plain(variable(e.name, 'index', e.span))
    const param = this.#kernel.params.find((p) => p.name === e.name)
    const sizes = this.#kernel.params.filter((p) => p.kind === 'size').map((p) => p.name)
    const own = this.#params.length > 0 ? `a parameter (${this.#params.join(', ')}), ` : ''
    const expected = `${own}a size (${sizes.join(', ')}), a device (${DEVICE_KINDS.join(', ')}) or a statistic`
    if (param?.kind === 'size') return plain(variable(e.name, 'index', e.span))
    if (param)
      return report('check/unknown-name', e.span, {
        message: `${e.name} is a scalar, and schedules are chosen by sizes`,
        expected,
      })
    if (isDevice(e.name)) return this.#deviceQuery(e.name, { kind: 'is', device: e.name }, 'bool', e.span)
    if (isFigure(e.name)) return this.#deviceQuery(e.name, { kind: e.name }, FIGURES[e.name], e.span)
    const isAxis = this.#axes.has(e.name)
    return report('check/unknown-name', e.span, {
      message: isAxis ? `${e.name} is an axis` : `there is no ${e.name} here`,
      expected,
      ...(isAxis
        ? { hint: `use a statistic: longest(${e.name})` }
        : {
            lookup: {
              name: e.name,
              candidates: [...this.#params, ...sizes, ...DEVICE_KINDS, ...Object.keys(FIGURES)],
            },
          }),
    })
  }

  #deviceQuery(name: string, question: DeviceQuestion, dtype: Dtype, span: Span): Typed {
    this.device.set(name, question)
    return plain(variable(name, dtype, span))
  }

  access(e: Ast.Access): null {
    return report('check/unknown-name', e.span, {
      message: 'values of tensors are not known where a schedule is chosen',
      expected: 'sizes, devices and statistics',
    })
  }

  field(e: Ast.Field): null {
    return report('check/unknown-name', e.span, {
      message: `there is no ${e.object.name} with parts here`,
      expected: 'sizes, devices and statistics',
    })
  }

  call(e: Ast.Call): Typed | null | undefined {
    const fn = e.fn.name
    if (!FUNCTIONS.includes(fn))
      return report('check/unknown-function', e.fn.span, {
        message: `there is no function ${fn} here`,
        lookup: { name: fn, candidates: FUNCTIONS },
      })
    if (fn === 'has') {
      const feature = featureOf(e)
      return feature === null
        ? null
        : this.#deviceQuery(`has(${feature})`, { kind: 'has', feature }, 'bool', e.span)
    }
    if (!STATISTICS.includes(fn)) return undefined
    if (fn === 'fill_ratio') {
      const found = coverageOf(e, this.#kernel, this.#formatNames, this.#find)
      return found && this.#statistic(coverageText(found), found, 'f64', e.span)
    }
    const [of] = e.args
    if (e.by || e.args.length !== 1 || of?.kind !== 'name')
      return report('check/statistic', e.span, {
        message: `${fn} takes ${fn === 'nnz' ? 'a tensor' : 'an axis'}`,
        expected: fn === 'nnz' ? 'the name of a sparse tensor' : this.#ragged(),
      })
    const found = fn === 'nnz' ? this.#nnz(of) : this.#ofAxis(fn as AxisStatistic, of)
    if (!found) return null
    return this.#statistic(`${fn}(${of.name})`, found, fn === 'mean' ? 'f64' : 'index', e.span)
  }

  #statistic(name: string, found: Statistic, dtype: 'f64' | 'index', span: Span): Typed {
    this.statistics.set(name, found)
    return plain(variable(name, dtype, span))
  }

  #ofAxis(kind: AxisStatistic, { name, span }: Ast.Name): Statistic | null {
    const axis = this.#axes.get(name)
    if (axis && hasIndptr(axis)) return { kind, axis: name }
    const candidates = [...this.#axes.values()].filter(hasIndptr).map((a) => a.name)
    return report(axis ? 'check/statistic' : 'check/unknown-axis', span, {
      message: axis
        ? `axis ${name} has no segments of different lengths`
        : `kernel ${this.#kernel.name} has no axis ${name}`,
      ...(axis
        ? { expected: this.#ragged(), hint: 'the extent of a ragged axis is a size' }
        : { lookup: { name, candidates } }),
    })
  }

  #nnz({ name, span }: Ast.Name): Statistic | null {
    const sparse = this.#kernel.buffers.filter((b) => b.axes.some((a) => !isDenseChain(this.#axes, a)))
    if (sparse.some((b) => b.name === name)) return { kind: 'nnz', tensor: name }
    const known = this.#kernel.buffers.some((b) => b.name === name)
    return report(known ? 'check/statistic' : 'check/unknown-buffer', span, {
      message: known ? `${name} is dense` : `kernel ${this.#kernel.name} has no buffer ${name}`,
      ...(known
        ? { expected: `a sparse tensor: ${sparse.map((b) => b.name).join(', ') || 'there is none'}` }
        : { lookup: { name, candidates: sparse.map((b) => b.name) } }),
    })
  }

  #ragged(): string {
    const names = [...this.#axes.values()].filter(hasIndptr).map((a) => a.name)
    return `an axis whose segments have lengths of their own: ${names.join(', ') || 'there is none'}`
  }
}
