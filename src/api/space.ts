/** Spaces of schedules as values: points are decided one value at a time, and applied by ordinary steps. */
import { brokenFact, factText } from '../analysis/integers/facts.ts'
import { fail } from '../ast/diagnostic.ts'
import { expectArgument, isRecord } from '../ast/expect-argument.ts'
import {
  decidedIn,
  isEmptySpace,
  openIn,
  refuseOthers,
  restIn,
  type SpacePoint,
  type Space as SpaceText,
  type SpaceUse,
  scheduleIn,
  soleUse,
} from '../elaborate/index.ts'
import type { Var } from '../ir/expr.ts'
import type { Compilation } from '../run/compile.ts'
import { type Step, stepsOf, valuesOf } from '../schedule/resolve.ts'
import { type ChoiceInputs, type ChosenFor, type Facts, factsFor, lookupOf } from './choose.ts'
import { kindOf } from './choose-device.ts'
import { type Surroundings, withTexts } from './kernel-scope.ts'

/** What points are applied to. */
interface Base<K> {
  readonly compilation: Compilation
  apply(steps: readonly Step[]): K
}

/** A space of a program, with arguments for its parameters, before device and data are known. */
export class OpenSpace<K extends Base<K>> {
  /** With its kernel's, and its arguments: `k.gpu(5)`. */
  readonly name: string
  readonly #space: SpaceText
  readonly #values: ReadonlyMap<string, number>
  readonly #base: K

  readonly #texts: Pick<Surroundings, 'sources'>

  constructor(
    space: SpaceText,
    base: K,
    args: readonly (number | undefined)[],
    texts: Pick<Surroundings, 'sources'>,
  ) {
    this.#texts = texts
    this.#space = space
    this.#base = base
    this.#values = valuesOf(space, args, 'space')
    const given = args.length > 0 ? `(${[...this.#values.values()].join(', ')})` : ''
    this.name = `${space.kernel}.${space.name}${given}`
  }

  /**
   * For a device, or a kind of device, and data: what the conditions of the space ask of them is known from here on.
   *
   * @param inputs as `choose` takes them: tensors, or sizes and statistics; only what conditions ask for is looked at
   * @throws SptError `space/empty` where no point meets the conditions, `choose/unknown-…` where they ask for something
   * that was not given
   */
  on(on: ChosenFor, inputs: ChoiceInputs = {}): Promise<Space<K>> {
    return withTexts(this.#texts, () => this.#on(on, inputs))
  }

  async #on(on: ChosenFor, inputs: ChoiceInputs): Promise<Space<K>> {
    kindOf(on)
    const space = this.#space
    const facts = factsFor(space, this.#base.compilation.source, inputs)
    await facts.statistics.download(space.statistics.values())
    const lookup = lookupOf(space, facts, on)
    const found = new Map<string, number>()
    const known = (v: Var): number => {
      const before = found.get(v.name)
      if (before !== undefined) return before
      const value = lookup(v)
      found.set(v.name, value)
      return value
    }
    const use: SpaceUse = { space, params: this.#values, known }
    if (isEmptySpace(use))
      fail({
        code: 'space/empty',
        message: `no point of ${this.name} meets its conditions for these data`,
        span: space.span,
        notes: [...found].map(([name, value]) => `${name} is ${value}`),
        hint: 'leave out a condition, or give more values',
      })
    return new Space(this.name, use, this.#base, facts)
  }
}

/** A space for a device and data: a `KernelSpace` of `sparsetile/search`. */
export class Space<K extends Base<K>> {
  readonly name: string
  readonly #use: SpaceUse
  readonly #base: K
  readonly #facts: Facts

  constructor(name: string, use: SpaceUse, base: K, facts: Facts) {
    this.name = name
    this.#use = use
    this.#base = base
    this.#facts = facts
  }

  /** The decision after these, `null` for a whole point. @throws SptError `choose/unknown-…` */
  next(partial: SpacePoint) {
    expectArgument(isRecord(partial), 'a point', partial, 'values by decision')
    return openIn(this.#use, partial)
  }

  /** What all that follows a partial point depends on. */
  rest(partial: SpacePoint): string {
    return restIn(this.#use, partial)
  }

  /**
   * The kernel under the schedule of a point.
   *
   * @throws SptError `space/point` where something is not decided, `space/requirement` where a schedule requires other sizes,
   * and as the steps
   */
  kernel(point: SpacePoint): K {
    const { schedule, args } = this.#whole(point)
    const kernel = this.#base.apply(stepsOf(schedule, args))
    const { sizes } = this.#facts.statistics
    const broken = brokenFact(kernel.compilation.loops.facts, sizes)
    if (broken)
      fail({
        code: 'space/requirement',
        message: `the schedule requires ${factText(broken)}, and ${broken.size} is ${sizes.get(broken.size)}`,
        ...(broken.span && { span: broken.span }),
        expected: 'sizes that it is for',
        hint: `only where (${factText(broken)})`,
      })
    return kernel
  }

  /**
   * The schedule of the program that a point is, where it is one and no other steps; else `null`.
   * @throws SptError `space/point` where something is not decided
   */
  call(point: SpacePoint): { readonly name: string; readonly args: readonly number[] } | null {
    return soleUse(this.#whole(point).schedule)
  }

  #whole(point: SpacePoint): ReturnType<typeof scheduleIn> {
    const open = this.next(point)
    if (open)
      fail({
        code: 'space/point',
        message: `the point of ${this.name} does not decide ${open.name}`,
        expected: open.values.join(', ') || 'other values before it: none is allowed after these',
      })
    refuseOthers(this.name, point, decidedIn(this.#use, point))
    return scheduleIn(this.#use, point)
  }
}
