/** Search spaces as values: decisions of a point are made one at a time, and ordinary steps apply a point. */

import { failAs, failWith, resultOrError } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord } from '../../ast/diagnostics/expect-argument.ts'
import {
  isEmptySpace,
  refuseOthers,
  type SpacePoint,
  type Space as SpaceText,
  type SpaceUse,
  SpaceWalk,
  soleUse,
} from '../../elaborate/index.ts'
import { type Var, variable } from '../../ir/expressions/expr.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { factText } from '../../ir/print/fact-text.ts'
import { brokenFact } from '../../plan/interpret.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { formatInputs } from '../../schedule/coordinates/as/format-inputs.ts'
import { valuesOf } from '../../schedule/steps/parameter-values.ts'
import { type Step, stepsOf } from '../../schedule/steps/resolve.ts'
import { kindOf, type SelectionContext } from '../dispatch/device-facts.ts'
import { lookupIn } from '../dispatch/facts.ts'
import { inputFacts } from '../dispatch/input-facts.ts'
import { type Inputs, namedInputs, type SelectionOptions } from '../inputs/flat-inputs.ts'
import { ErrorSources } from '../programs/error-sources.ts'

/** A kernel, as far as spaces of its schedules need it. */
export interface SpaceBase<K> extends Pick<ErrorSources, 'sources'> {
  readonly compilation: Compilation
  apply(steps: readonly Step[]): K
}

/** A search space of a program with arguments, before device and data are known. */
export class UnboundSpace<K extends SpaceBase<K>> extends ErrorSources {
  /** Name with the kernel's and with arguments, such as `k.gpu(5)`. */
  readonly name: string
  readonly #space: SpaceText
  readonly #values: ReadonlyMap<string, number>
  readonly #base: K

  /** @internal */
  constructor(space: SpaceText, base: K, args: readonly (number | undefined)[]) {
    super()
    this.#space = space
    this.#base = base
    this.#values = valuesOf(space, args, 'space')
    const given = args.length > 0 ? `(${[...this.#values.values()].join(', ')})` : ''
    this.name = `${space.kernel}.${space.name}${given}`
  }

  get sources(): K['sources'] {
    return this.#base.sources
  }

  /**
   * Binds the space to a device, or a kind of device, and data, which its conditions use.
   * @param inputs as for `choose`: only values in conditions are read
   * @throws SptError `space/empty` if no point satisfies the conditions, `choose/unknown-…` if a condition needs a missing value
   */
  async bind(on: SelectionContext, inputs: Inputs = {}, options: SelectionOptions = {}): Promise<Space<K>> {
    kindOf(on)
    const given = namedInputs('bind', inputs, options, ['resident'])
    const space = this.#space
    const { source } = this.#base.compilation
    const { statistics, sizes } = inputFacts(space, source, on, given, formatInputs([], [space]))
    await statistics.download()
    const lookup = lookupIn([statistics], sizes)
    const found = new Map<string, number>()
    const known = (v: Var): number => getOrAdd(found, v.name, () => lookup(v))
    const use: SpaceUse = { space, params: this.#values, known }
    if (isEmptySpace(use))
      failWith('space/empty', `no point of ${this.name} meets its conditions for these data`, {
        span: space.span,
        notes: [...found].map(([name, value]) => `${name} is ${value}`),
        hint: 'leave out a condition, or give more values',
      })
    return new Space(this.name, use, this.#base, sizes.sizes)
  }

  /** Rebuilds the space from its origin in another thread: `kernel.space(name, ...args).rebuild(origin)`. */
  rebuild({ answers, sizes }: Pick<SpaceOrigin<K>, 'answers' | 'sizes'>): Space<K> {
    const known = (v: Var): number =>
      answers.get(v.name) ??
      failWith('choose/unknown-name', `missing value for ${v.name}`, {
        lookup: { name: v.name, candidates: [...answers.keys()] },
      })
    return new Space(this.name, { space: this.#space, params: this.#values, known }, this.#base, sizes)
  }
}

/** Serialisable description of a space for a device and data. */
export interface SpaceOrigin<K> {
  readonly base: K
  /** Name of the space in its program. */
  readonly name: string
  readonly args: readonly number[]
  /** Known values of the names in its conditions. */
  readonly answers: ReadonlyMap<string, number>
  readonly sizes: ReadonlyMap<string, number>
}

/** A search space for a device and data: a `KernelSpace` of `sparsetile/search`. */
export class Space<K extends SpaceBase<K>> extends ErrorSources {
  readonly name: string
  readonly #use: SpaceUse
  readonly #base: K
  readonly #sizes: ReadonlyMap<string, number>

  /** @internal */
  constructor(name: string, use: SpaceUse, base: K, sizes: ReadonlyMap<string, number>) {
    super()
    this.name = name
    this.#use = use
    this.#base = base
    this.#sizes = sizes
  }

  get sources(): K['sources'] {
    return this.#base.sources
  }

  /** Source of the space in `.spt`. */
  get text(): string {
    return this.#use.space.text
  }

  /** Serialisable description from which another thread rebuilds the space. */
  origin(): SpaceOrigin<K> {
    const { space, params, known } = this.#use
    const names = [
      ...space.statistics.keys(),
      ...space.device.keys(),
      ...this.#base.compilation.source.params.map((p) => p.name),
    ]
    const args = [...params.values()].flatMap((v) => v ?? [])
    const answers = new Map<string, number>()
    for (const name of names) {
      const answer = resultOrError(() => known(variable(name)))
      if (typeof answer === 'number') answers.set(name, answer)
    }
    return { base: this.#base, name: space.name, args, answers, sizes: this.#sizes }
  }

  /** The next decision after a partial point; `null` if the point is complete. @throws SptError `choose/unknown-…` */
  next(partial: SpacePoint) {
    expectArgument(isRecord(partial), 'a point', partial, 'values by decision')
    return this.#walk(partial).open
  }

  /** Key of all decisions that can follow a partial point. */
  remainderKey(partial: SpacePoint): string {
    return this.#walk(partial).rest
  }

  /**
   * The kernel under the schedule of a point.
   * @throws SptError `space/point` if a decision is missing, `space/requirement` if the sizes violate a requirement of the schedule, and
   * as the steps
   */
  kernel(point: SpacePoint): K {
    const { schedule, args } = this.#whole(point)
    const kernel = this.#base.apply(stepsOf(schedule, args))
    const sizes = this.#sizes
    const broken = brokenFact(kernel.compilation.loops.facts, sizes)
    if (broken)
      failAs('space/requirement', {
        message: `the schedule requires ${factText(broken)}, and ${broken.size} is ${sizes.get(broken.size)}`,
        ...(broken.span && { span: broken.span }),
        expected: 'sizes that it is for',
        hint: `only where (${factText(broken)})`,
      })
    return kernel
  }

  /** The schedule call that equals a point; `null` if the point has other steps. @throws SptError `space/point` if a decision is missing */
  call(point: SpacePoint): { readonly name: string; readonly args: readonly number[] } | null {
    return soleUse(this.#whole(point).schedule)
  }

  #walk(point: SpacePoint): SpaceWalk {
    return new SpaceWalk(this.#use, point)
  }

  #whole(point: SpacePoint): ReturnType<SpaceWalk['schedule']> {
    expectArgument(isRecord(point), 'a point', point, 'values by decision')
    const walk = this.#walk(point)
    const { open } = walk
    if (open)
      failWith('space/point', `the point of ${this.name} does not decide ${open.name}`, {
        expected: open.values.join(', ') || 'other values before it: none is allowed after these',
      })
    refuseOthers(this.name, point, new Set(walk.decided))
    return walk.schedule()
  }
}
