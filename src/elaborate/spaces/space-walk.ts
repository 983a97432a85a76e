/**
 * Traversal of a space: the decision that a point leaves open, a key of the remainder, and the schedule of a complete
 * point. Options come first, because they determine the numbers; then numbers; then the decisions of nested spaces.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { lazy } from '../../ast/lazy.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { integer } from '../../ast/nodes/syntax-builders.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { Schedule } from '../schedules/schedule-types.ts'
import {
  type FormatDecision,
  isNested,
  type NestedSpace,
  type NumberDecision,
  type Option,
  type SpaceCondition,
  type SpaceStep,
} from './space-types.ts'
import type { Known, OpenValues, SpacePoint, SpaceUse, Use } from './space-values.ts'
import { argumentsOf, isStrict, isUse, notAmong, numbersOf, partialValue } from './space-values.ts'

type Leaf = Ast.Step | Use | Nested
interface Nested {
  readonly kind: 'nested'
  readonly at: NestedSpace
  readonly walk: () => Walk
}

/** Throws SptError `space/…`, and the errors of `known`. */
export class Walk {
  /** The next decision that the point leaves open; null for a complete point. */
  open: OpenValues | null = null
  /** True if the values of the open decision depend on unknown names. */
  isUnknown = false
  readonly #leaves: Leaf[] = []
  readonly #conditions: SpaceCondition[]
  /** Numbers that the chosen steps and options mention. */
  readonly #mentioned = new Set<string>()
  readonly #chosen = new Map<string, Option>()
  readonly #numbers = new Map<string, number | undefined>()
  /** True if all options are chosen. */
  #isChosen = false
  /** Names of the decisions for which the point has values. */
  readonly #decided: string[] = []

  constructor(
    private readonly use: SpaceUse,
    private readonly point: SpacePoint,
    private readonly prefix = '',
  ) {
    this.#conditions = [...use.space.conditions]
    this.#body(use.space.body)
    if (this.open) return
    this.#isChosen = true
    this.#decideNumbers()
    if (!this.open && !this.#isPossible())
      this.open = { name: `${prefix}only`, values: [], ordered: false, considered: 0 }
    for (const { walk } of this.#nested) {
      if (this.open) return
      this.open = walk().open
      this.isUnknown = walk().isUnknown
    }
  }

  /** Names of the decisions for which the point has values, also in nested spaces. */
  get decided(): readonly string[] {
    return [...this.#decided, ...this.#nested.flatMap(({ walk }) => walk().decided)]
  }

  get #nested(): readonly Nested[] {
    return this.#leaves.filter((l): l is Nested => l.kind === 'nested')
  }

  #body(steps: readonly SpaceStep[]): void {
    for (const s of steps) {
      if (this.open) return
      if (s.kind === 'step') this.#leaf(s.step, s.numbers)
      else if (s.kind === 'use') this.#leaf(s, s.numbers)
      else if (s.kind === 'format') {
        const decision = this.use.space.formats.get(s.format)!
        const k = this.#choose(decision)
        if (k !== null) this.#leaf(s.steps[k]!, s.numbers)
      } else {
        const k = this.#choose(s)
        if (k === null) return
        const { body } = s.options[k]!
        if (isNested(body)) this.#leaves.push(this.#into(body))
        else this.#body(body)
      }
    }
  }

  #leaf(step: Exclude<Leaf, Nested>, numbers: Iterable<string>): void {
    this.#leaves.push(step)
    for (const n of numbers) this.#mentioned.add(n)
  }

  #into(at: NestedSpace): Nested {
    const walk = lazy(() => new Walk(this.#nestedUse(at), this.point, this.prefix + at.prefix))
    return { kind: 'nested', at, walk }
  }

  #nestedUse({ space, args }: NestedSpace): SpaceUse {
    const params = new Map<string, number | undefined>()
    space.params.forEach((p, k) => {
      const given = args[k]
      const value = given
        ? partialValue(given, this.#known)
        : p.default && partialValue(p.default, (v) => params.get(v.name))
      params.set(p.name, value ?? undefined)
    })
    return { space, params, known: this.use.known }
  }

  /** The index of the option that the point chooses; null if it is not decided yet. */
  #choose({ name, options }: FormatDecision): number | null {
    const own = this.prefix + name
    const before = this.#chosen.get(name)
    if (before) return options.indexOf(before)
    const value = this.#pointValue(own)
    const k = options.length === 1 ? 0 : options.findIndex((o) => o.text === value)
    const option = options[k]
    if (option) {
      if (options.length > 1) this.#decided.push(own)
      this.#chosen.set(name, option)
      this.#conditions.push(...option.conditions)
      for (const n of option.numbers) this.#mentioned.add(n)
      return k
    }
    if (value !== undefined)
      notAmong(
        own,
        value,
        options.map((o) => o.text),
      )
    const values = options.filter((o) => this.#isPossible(o)).map((o) => o.text)
    this.open = { name: own, values, ordered: false, considered: options.length }
    return null
  }

  /** The numbers mentioned by steps, options and values of mentioned numbers, and fixed numbers over these numbers. */
  get #active(): readonly NumberDecision[] {
    const all = this.use.space.numbers
    const names = new Set(this.#mentioned)
    for (const n of [...all].reverse()) if (names.has(n.name)) for (const m of n.numbers) names.add(m)
    for (const n of all) if (n.isFixed && [...n.numbers].every((m) => names.has(m))) names.add(n.name)
    return all.filter((n) => names.has(n.name))
  }

  #decideNumbers(): void {
    const active = this.#active
    for (const { name } of active) this.#numbers.set(name, undefined)
    for (const n of active)
      this.#numbers.set(n.name, n.isFixed ? numbersOf(n, this.#known)?.[0] : this.#given(n.name))
    const next = active.find((n) => !n.isFixed && this.#numbers.get(n.name) === undefined)
    if (!next) return
    const all = numbersOf(next, this.#known)
    // A condition that waits for other numbers as well rejects no value.
    const decidable = this.#applicable.filter((c) => !this.#waits(c, next.name))
    const isMentioned = decidable.some((c) => c.numbers.includes(next.name))
    const isPossible = isMentioned || this.#isPossible()
    // If no condition mentions the number, either all values are possible or no value is.
    const values = isMentioned
      ? all?.filter((v) => {
          this.#numbers.set(next.name, v)
          return this.#hold(decidable)
        })
      : isPossible
        ? all
        : all && []
    this.#numbers.set(next.name, undefined)
    this.isUnknown = values === undefined && this.#isPossible()
    const considered = isMentioned ? (all?.length ?? 0) : 0
    this.open = { name: this.prefix + next.name, values: values ?? [], ordered: true, considered }
  }

  /** The value in the point; undefined if it has no value. Names are the user's, for example `__proto__`. */
  #pointValue(name: string): number | string | undefined {
    return Object.hasOwn(this.point, name) ? this.point[name] : undefined
  }

  #given(name: string): number | undefined {
    const value = this.#pointValue(this.prefix + name)
    if (value !== undefined) this.#decided.push(this.prefix + name)
    if (value === undefined || typeof value === 'number') return value
    return notAmong(this.prefix + name, value, ['an integer'])
  }

  readonly #known: Known = (v) => {
    const { params, known, space } = this.use
    if (params.has(v.name)) return params.get(v.name)
    if (this.#numbers.has(v.name)) return this.#numbers.get(v.name)
    return space.numbers.some((n) => n.name === v.name) ? undefined : known(v)
  }

  /** True if no condition so far and no condition of `option` is known to be false. */
  #isPossible(option?: Option): boolean {
    const applies = (n: string): boolean => this.#mentioned.has(n) || option!.numbers.has(n)
    return this.#hold([
      ...this.#applicable,
      ...(option?.conditions.filter((c) => c.numbers.every(applies)) ?? []),
    ])
  }

  #hold(conditions: readonly SpaceCondition[]): boolean {
    return conditions.every((c) => partialValue(c.expr, this.#known) !== 0)
  }

  /** True if a condition stays unknown for every value of a number, because it needs another open number. */
  #waits({ expr, numbers }: SpaceCondition, next: string): boolean {
    return isStrict(expr) && numbers.some((n) => n !== next && this.#isOpen(n))
  }

  /** True if a number is open. Fixed numbers follow from the numbers that they mention. */
  #isOpen(name: string): boolean {
    const isFixed = this.use.space.numbers.some((n) => n.isFixed && n.name === name)
    return this.#numbers.has(name) && this.#numbers.get(name) === undefined && !isFixed
  }

  /** Conditions on mentioned numbers: a number that no chosen step mentions is not decided. */
  get #applicable(): readonly SpaceCondition[] {
    const names = this.#isChosen ? this.#numbers : this.#mentioned
    return this.#conditions.filter((c) => c.numbers.every((n) => names.has(n)))
  }

  /** A key of the remainder of the space; empty for a complete point. */
  get rest(): string {
    if (!this.open) return ''
    const params = this.prefix === '' ? '' : `(${[...this.use.params.values()].join()})`
    if (!this.#isChosen)
      return `${params}o${JSON.stringify([...this.#chosen].map(([name, o]) => [name, o.text]))}`
    // Fixed numbers may violate conditions that no decision has evaluated.
    if (!this.#isPossible()) return 'x'
    const left = [...this.#numbers].flatMap(([name, value]) => (value === undefined ? [name] : []))
    const numbers = this.use.space.numbers
    if (numbers.every((n) => n.isFixed || !left.includes(n.name)))
      return `${params}n${this.#nested.map((n) => `[${n.walk().rest}]`).join('')}`
    const pending = this.#applicable.filter((c) => c.numbers.some((n) => left.includes(n)))
    const matters = new Set([
      ...pending.flatMap((c) => c.numbers),
      ...numbers.flatMap((n) => (left.includes(n.name) ? [...n.numbers] : [])),
      ...this.#nested.flatMap(({ at }) => at.args.flatMap((a) => (a ? [...freeVars(a)] : []))),
    ])
    const values = [...this.#numbers].filter(([name, value]) => value !== undefined && matters.has(name))
    const places = pending.map((c) => `${c.span.source}:${c.span.start}`)
    const nested = this.#nested.map(({ at }) => at.prefix)
    return `${params}${JSON.stringify([left, places, values, nested])}`
  }

  /** The steps of a complete point, with arguments for its parameters. */
  schedule(): { readonly schedule: Schedule; readonly args: readonly number[] } {
    invariant(!this.open, 'a whole point')
    const { space, params } = this.use
    const uses = new Map(space.names.uses)
    const steps = this.#leaves.map((leaf): Ast.Step => {
      if (isUse(leaf)) return { ...leaf.step, args: argumentsOf(leaf, this.#known) }
      if (leaf.kind !== 'nested') return leaf
      const { span, prefix } = leaf.at
      const { schedule, args } = leaf.walk().schedule()
      // Names of schedules contain no dot, so the prefix is unused.
      uses.set(prefix, schedule)
      const numbers = args.map((a) => ({ name: null, value: integer(a, span), span }))
      return { kind: 'use', schedule: { name: prefix, span }, args: numbers, results: [], span }
    })
    const values = [...params, ...this.#numbers].map(([name, value]) => {
      invariant(value !== undefined, 'a value for each name')
      return { name, value }
    })
    const schedule: Schedule = {
      kernel: space.kernel,
      name: space.name,
      params: values.map(({ name }) => ({ name, kind: 'size', default: null })),
      results: [],
      made: space.names.made,
      steps,
      formats: space.names.formats,
      uses,
      calls: space.names.calls,
      memories: space.names.memories,
      instrs: space.names.instrs,
      span: space.span,
    }
    return { schedule, args: values.map(({ value }) => value) }
  }
}
