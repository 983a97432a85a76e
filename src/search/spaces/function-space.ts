/** Spaces defined by a function, which makes decisions in order and returns the steps that they imply. */
import { failWith, InternalError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, expectDistinct, isRecord, nameText } from '../../ast/diagnostics/expect-argument.ts'
import { refuseOthers } from '../../elaborate/index.ts'
import type { DecisionValue, KernelSpace, OpenDecision, Point } from '../types.ts'

/** Values of a decision at most. */
const MAX_VALUES = 4096
/** Values of the last decision that are checked with `only` in advance; further ones are checked when they are taken. */
const CHECKED_VALUES = 64
/** Decisions of a point at most. */
const MAX_DECISIONS = 1000
/** Points of a space at most whose steps are applied to find decisions that are taken after `decide` has returned. */
const MAX_PROBES = 64

/**
 * Interface through which the function of a space makes decisions. Each name is decided once per point, before the function
 * returns (`space/late-decision`).
 */
export interface Decisions {
  /** One of some numbers; adjacent numbers in the list are similar. */
  number(name: string, values: Iterable<number>): number
  /** One of some texts. */
  option<const T extends string>(name: string, values: readonly T[]): T
  /** One of some values, by name: functions, formats, other functions that decide. */
  pick<T>(name: string, values: Readonly<Record<string, T>>): T
  flag(name: string): boolean
  /** A point of another space, its decisions named `name.…`: the kernel under its schedule. */
  within<K>(name: string, space: KernelSpace<K>): () => K
  /** Excludes points for which the condition is false; called early, it removes values from decisions. */
  only(holds: boolean): void
}

/** Steps on a kernel. */
export type KernelTransform<K> = (kernel: K) => K

/**
 * A space from TypeScript. `decide` takes the decisions of a point in order, and gives its steps; it is called often, for parts
 * of points too, and depends on nothing but what it decides.
 *
 *     space('mine', kernel, (p) => {
 *       const lanes = p.number('lanes', [1, 2, 4, 8])
 *       const each = p.number('each', [1, 2, 4])
 *       p.only(lanes * each <= 16)
 *       return (k) => k.schedule('rows', lanes, each)
 *     })
 * @throws SptError `api/argument`; `space/late-decision` where the steps that it returns decide; its points `space/thrown` where
 * the function throws
 */
export function space<K>(
  name: string,
  kernel: K,
  decide: (p: Decisions) => KernelTransform<K>,
): KernelSpace<K> {
  expectArgument(typeof name === 'string' && name !== '', 'the name of a space', name, 'a text')
  expectArgument(typeof decide === 'function', 'what decides', decide, '(p) => (kernel) => kernel')
  const probed = new Set<string>()
  let probes = 0
  // A value that no point had before may be what leads to a late decision.
  const probe = (point: Point, make: KernelTransform<K>): void => {
    const values = [...Object.entries(point).map(String), '']
    if (probes >= MAX_PROBES || values.every((v) => probed.has(v))) return
    for (const v of values) probed.add(v)
    probes++
    try {
      kernelAt(name, point, make, kernel)
    } catch (e) {
      // Other errors are those of this point, reported where its kernel is made.
      if (e instanceof SptError && e.code === LATE) throw e
    }
  }
  return {
    name,
    next(partial) {
      expectArgument(isRecord(partial), 'a point', partial, 'values by decision')
      return openDecision(name, decide, partial, probe)
    },
    kernel(point) {
      expectArgument(isRecord(point), 'a point', point, 'values by decision')
      const way = walk(name, decide, point)
      if (way.kind === 'thrown') throw way.why
      if (way.kind === 'whole') {
        refuseOthers(name, point, way.decided)
        return kernelAt(name, point, way.make, kernel)
      }
      return failWith(
        'space/point',
        `the point of ${name} does not decide ${way.kind === 'open' ? way.open.name : 'what is allowed'}`,
        {
          expected:
            way.kind === 'open' ? way.open.values.slice(0, 12).join(', ') : 'a value that `only` allows',
        },
      )
    },
  }
}

function kernelAt<K>(name: string, point: Point, make: KernelTransform<K>, kernel: K): K {
  const result: unknown = runUserCode(name, point, () => make(kernel))
  expectArgument(isLike(result, kernel), `what a point of ${name} makes`, result, 'a kernel')
  return result as K
}

/** True if both have one class; a promise of a kernel does not. */
const isLike = (value: unknown, kernel: unknown): boolean =>
  typeof value === typeof kernel &&
  value !== null &&
  (typeof kernel !== 'object' || Object.getPrototypeOf(value) === Object.getPrototypeOf(kernel))

const THROWN = 'space/thrown'
const LATE = 'space/late-decision'

/** @throws SptError `space/thrown` for errors that are not diagnostics, so that only this point fails */
function runUserCode<T>(name: string, point: Point, work: () => T): T {
  try {
    return work()
  } catch (e) {
    if (e instanceof Stop || e instanceof SptError || e instanceof InternalError) throw e
    const decisions = Object.entries(point).map(([decision, value]) => `${decision} = ${value}`)
    return failWith(
      THROWN,
      `the function of the space ${name} throws ${decisions.length > 0 ? `at ${decisions.join(', ')}` : 'before it decides anything'}: ${e instanceof Error ? e.message : String(e)}`,
      { expected: 'steps on the kernel, or `only(…)` for an illegal point' },
    )
  }
}

type Way<K> =
  | { readonly kind: 'whole'; readonly make: KernelTransform<K>; readonly decided: ReadonlySet<string> }
  | { readonly kind: 'open'; readonly open: OpenDecision }
  | { readonly kind: 'refused' }
  /** The function throws: no point exists here. */
  | { readonly kind: 'thrown'; readonly why: SptError }

/** Leaves the function of a space at an open or impossible decision. */
class Stop extends Error {
  constructor(readonly way: Exclude<Way<unknown>, { kind: 'whole' | 'thrown' }>) {
    super('a space is walked through no further')
  }
}

function openDecision<K>(
  name: string,
  decide: (p: Decisions) => KernelTransform<K>,
  partial: Point,
  probe: (point: Point, make: KernelTransform<K>) => void,
): OpenDecision | null {
  const way = walk(name, decide, partial)
  if (way.kind === 'whole') probe(partial, way.make)
  if (way.kind === 'whole' || way.kind === 'thrown') return null
  if (way.kind === 'refused') return { name: 'only', values: [], ordered: false }
  const { open } = way
  if (open.values.length > CHECKED_VALUES) return open
  const isAllowed = (v: DecisionValue): boolean =>
    walk(name, decide, { ...partial, [open.name]: v }).kind !== 'refused'
  return { ...open, values: open.values.filter(isAllowed), considered: open.values.length }
}

/** Spaces within each other: more are one within itself. */
const MAX_DEPTH = 32
let depth = 0

function walk<K>(name: string, decide: (p: Decisions) => KernelTransform<K>, point: Point): Way<K> {
  if (depth >= MAX_DEPTH) endless(name, `spaces within spaces, ${MAX_DEPTH} deep`)
  depth++
  try {
    const decider = new Walk(name, point)
    const make: unknown = runUserCode(name, point, () => decide(decider))
    expectArgument(typeof make === 'function', `what ${name} decides`, make, '(kernel) => kernel')
    decider.end()
    return { kind: 'whole', make: make as KernelTransform<K>, decided: decider.decided }
  } catch (e) {
    if (e instanceof Stop) return e.way
    if (e instanceof SptError && e.code === THROWN) return { kind: 'thrown', why: e }
    throw e
  } finally {
    depth--
  }
}

const endless = (name: string, what: string): never =>
  failWith('space/endless', `${name} has ${what}`, {
    expected: 'decisions that come to an end',
    hint: 'a space that is within itself has no end',
  })

class Walk implements Decisions {
  readonly #decided = new Set<string>()
  #hasEnded = false

  get decided(): ReadonlySet<string> {
    return this.#decided
  }

  constructor(
    private readonly space: string,
    private readonly point: Point,
  ) {}

  /** The function has returned: all that it decides is decided. */
  end(): void {
    this.#hasEnded = true
  }

  #expectOpen(call: string): void {
    if (!this.#hasEnded) return
    failWith(LATE, `the steps of the space ${this.space} take ${call} after its function has returned`, {
      expected: 'decisions before the function returns: the steps only use their values',
      hint: "call the result of `pick` first: `const steps = p.pick('f', { … })(); return (k) => steps(k)`",
    })
  }

  #decide<T extends DecisionValue>(name: string, values: readonly T[], ordered: boolean): T {
    this.#expectOpen(`the decision ${String(name)}`)
    if (typeof name !== 'string' || name === '')
      expectArgument(false, 'the name of a decision', name, 'a text')
    if (this.#decided.has(name))
      failWith('space/decided-twice', `${this.space} decides ${name} twice`, {
        expected: 'a distinct name for each decision',
        hint: `keep the value of the first, or rename the second ${name}`,
      })
    this.#decided.add(name)
    if (this.#decided.size > MAX_DECISIONS) endless(this.space, `more than ${MAX_DECISIONS} decisions`)
    if (!Object.hasOwn(this.point, name)) throw new Stop({ kind: 'open', open: { name, values, ordered } })
    const value = this.point[name] as T
    if (values.includes(value)) return value
    return failWith('space/point', `${name} cannot be ${String(value)} in ${this.space}`, {
      expected: values.slice(0, 12).join(', '),
    })
  }

  number(name: string, values: Iterable<number>): number {
    if (typeof values?.[Symbol.iterator] !== 'function')
      expectArgument(false, `the values of ${nameText(name)}`, values, 'a list of numbers')
    const list: number[] = []
    for (const v of values) {
      if (list.length >= MAX_VALUES)
        failWith('space/endless', `${name} of ${this.space} has more than ${MAX_VALUES} values`, {
          expected: `at most ${MAX_VALUES}`,
          hint: 'take larger steps',
        })
      if (!Number.isFinite(v)) expectArgument(false, `a value of ${name}`, v, 'a number')
      list.push(v)
    }
    expectDistinct(`the values of ${name}`, list)
    return this.#decide(name, list, true)
  }

  option<const T extends string>(name: string, values: readonly T[]): T {
    expectDistinct(`the values of ${name}`, values)
    return this.#decide(name, values, false)
  }

  pick<T>(name: string, values: Readonly<Record<string, T>>): T {
    return values[this.#decide(name, Object.keys(values), false)]!
  }

  flag(name: string): boolean {
    return this.#decide(name, ['no', 'yes'], false) === 'yes'
  }

  within<K>(name: string, inner: KernelSpace<K>): () => K {
    this.#expectOpen(`the decisions of ${String(name)}`)
    const prefix = `${name}.`
    let innerPoint: Point = {}
    for (let open = inner.next(innerPoint); open; open = inner.next(innerPoint)) {
      if (open.values.length === 0) throw new Stop({ kind: 'refused' })
      innerPoint = { ...innerPoint, [open.name]: this.#decide(prefix + open.name, open.values, open.ordered) }
    }
    return () => inner.kernel(innerPoint)
  }

  only(holds: boolean): void {
    this.#expectOpen('the condition `only`')
    expectArgument(typeof holds === 'boolean', 'what only holds', holds, 'true or false')
    if (!holds) throw new Stop({ kind: 'refused' })
  }
}
