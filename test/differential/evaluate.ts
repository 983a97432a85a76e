/** A program's meaning, naively: nested loops over all coordinates, tensors as dictionaries of coordinates. */
import { binary, call, EXACT, exact, Inexact, identityOf } from './arithmetic.ts'
import type { Buffer, Chain, Data, Expr, Iteration, Program, Stmt, Target } from './model.ts'
import { cast, computed, isFloat, rounded, wrap } from './numbers.ts'
import { chainOf, elements, key, type Position, paths, positions, toldApart } from './structure.ts'

export interface Result {
  /** Elements of outputs and inouts by coordinates `i,j`. */
  readonly outputs: ReadonlyMap<string, ReadonlyMap<string, number>>
  /**
   * Whether something was written to a coordinate that does not exist. Undefined where this happened only in temporaries that no
   * output depends on: the compiler may remove such writes.
   */
  readonly lostWrites: boolean | undefined
}

type Scope = ReadonlyMap<string, number>
type Reached = ReadonlyMap<string, Position>

/** Buffers that outputs depend on, found from the statements that write them; what only a `let` reads is not followed. */
function neededBuffers(iterations: readonly Iteration[], outputs: ReadonlySet<string>): ReadonlySet<string> {
  const needed = new Set(outputs)
  const read = (e: Expr): readonly string[] => {
    const parts = 'at' in e ? e.at : 'args' in e ? e.args : 'of' in e ? [e.of] : 'a' in e ? [e.a, e.b] : []
    return [...(e.kind === 'read' ? [e.buffer] : []), ...parts.flatMap(read)]
  }
  const visit = (s: Stmt, conditions: readonly Expr[]): void => {
    if (s.kind === 'if')
      for (const inner of [...s.then, ...s.otherwise]) visit(inner, [...conditions, s.when])
    else if (s.kind === 'iterate')
      for (const inner of s.body) visit(inner, s.where ? [...conditions, s.where] : conditions)
    else if (s.kind !== 'let') {
      const targets = s.kind === 'assign' ? [s.target] : s.targets
      if (!targets.some((t) => needed.has(t.buffer))) return
      const values = s.kind === 'assign' ? [s.value] : s.values
      const used = [...conditions, ...values, ...targets.flatMap((t) => t.at)]
      for (const b of [...targets.map((t) => t.buffer), ...used.flatMap(read)]) needed.add(b)
    }
  }
  for (let size = 0; size < needed.size; ) {
    size = needed.size
    for (const it of iterations) visit(it, [])
  }
  return needed
}

class Evaluator {
  readonly #p: Program
  readonly #buffers: ReadonlyMap<string, Buffer>
  readonly #values = new Map<string, Map<string, number>>()
  /** Sums of magnitudes of what was added up in an element. */
  readonly #magnitude = new Map<string, number>()
  /** Buffers that writes to coordinates that do not exist were meant for. */
  readonly #lost = new Set<string>()

  constructor(p: Program, data: Data) {
    this.#p = p
    this.#buffers = new Map(p.buffers.map((b) => [b.name, b]))
    for (const b of p.buffers) {
      const at = elements(p, b.axes).map(key)
      const given = data.get(b.name)
      const start = given ? undefined : this.#start(b)
      this.#values.set(b.name, new Map(at.map((k, e) => [k, given ? given[e]! : start!])))
    }
  }

  run(): Result {
    const scope: Scope = new Map([...this.#p.sizes, ...this.#p.scalars].map((s) => [s.name, s.value]))
    for (const b of this.#p.buffers)
      if (!toldApart(this.#p, b.axes))
        throw new Inexact(`several elements of ${b.name} have one coordinate, and values of their own`)
    for (const it of this.#p.iterations) {
      this.#checkIdentities(it.body)
      this.#iterate(it, scope, new Map())
    }
    const outputs = this.#p.buffers.filter((b) => b.role === 'out' || b.role === 'inout')
    const needed = neededBuffers(this.#p.iterations, new Set(outputs.map((b) => b.name)))
    return {
      outputs: new Map(outputs.map((b) => [b.name, this.#values.get(b.name)!])),
      lostWrites: this.#lost.size > 0 && ([...this.#lost].some((b) => needed.has(b)) || undefined),
    }
  }

  /** An element may be combined with the identity once more, which changes it where it is NaN in a program's own monoids. */
  #checkIdentities(body: readonly Stmt[]): void {
    for (const s of body) {
      if (s.kind === 'if') this.#checkIdentities([...s.then, ...s.otherwise])
      if (s.kind === 'iterate') this.#checkIdentities(s.body)
      if (s.kind !== 'reduce' || !this.#p.monoids.some((m) => m.name === s.reducer)) continue
      for (const t of s.targets)
        for (const x of this.#values.get(t.buffer)!.values())
          if (Number.isNaN(x)) throw new Inexact(`NaN in ${t.buffer}, which ${s.reducer} combines`)
    }
  }

  /** What an output or local holds before anything is written: the identity of a reduction that comes first. */
  #start(b: Buffer): number {
    const first = (body: readonly Stmt[]): number | undefined => {
      for (const s of body) {
        if (s.kind === 'assign' && s.target.buffer === b.name) return b.fill ?? 0
        if (s.kind === 'reduce') {
          const k = s.targets.findIndex((t) => t.buffer === b.name)
          const monoid = this.#p.monoids.find((m) => m.name === s.reducer)
          if (k >= 0) return monoid ? monoid.identity[k] : identityOf(s.reducer, b.type)
        }
        const inner =
          s.kind === 'if'
            ? first([...s.then, ...s.otherwise])
            : s.kind === 'iterate'
              ? first(s.body)
              : undefined
        if (inner !== undefined) return inner
      }
      return undefined
    }
    return first(this.#p.iterations) ?? b.fill ?? 0
  }

  /** `reached`: the position of each axis that is iterated over, for those below. */
  #iterate(it: Iteration, scope: Scope, reached: Reached, depth = 0): void {
    const next = it.iterators[depth]
    if (!next) {
      if (!it.where || this.#value(it.where, scope)) this.#body(it.body, scope, reached)
      return
    }
    for (const visit of this.#visits(next.name, next.axis, reached)) {
      const inner = new Map(scope)
      const places = new Map(reached)
      for (const { name, axis, position } of visit) {
        inner.set(name, position.at)
        places.set(axis, position)
      }
      this.#iterate(it, inner, places, depth + 1)
    }
  }

  /** What each visit of an axis reaches: one position, or several of a fused axis. */
  #visits(
    name: string,
    axis: string,
    reached: Reached,
  ): { name: string; axis: string; position: Position }[][] {
    const one = (ps: readonly Position[]) => ps.map((position) => [{ name, axis, position }])
    const derived = this.#p.derived.find((d) => d.axis === axis)
    if (derived?.kind === 'gathered')
      return one(
        [...this.#values.get(derived.list)!.values()]
          .filter((at) => at >= 0 && at < chainOf(this.#p, derived.base).levels[0]!.extent.value)
          .map((at) => ({ at, below: [] })),
      )
    if (derived?.kind === 'attached') {
      const { at } = reached.get(derived.parent)!
      return one(
        this.#roots(derived.base)
          .filter((p) => p.at === at)
          .flatMap((p) => p.below),
      )
    }
    if (derived?.kind === 'fused')
      return paths(this.#roots(derived.over[0]!), derived.over.length).map((path) =>
        path.map((position, d) => ({ name: derived.over[d]!, axis: derived.over[d]!, position })),
      )
    const { levels } = chainOf(this.#p, axis)
    const parent = levels[levels.findIndex((l) => l.axis === axis) - 1]
    return one(parent ? reached.get(parent.axis)!.below : this.#roots(axis))
  }

  readonly #trees = new Map<Chain, Position[]>()

  #roots(axis: string): Position[] {
    const chain = chainOf(this.#p, axis)
    const tree = this.#trees.get(chain) ?? positions(chain)
    this.#trees.set(chain, tree)
    return tree
  }

  #body(body: readonly Stmt[], outer: Scope, reached: Reached): void {
    const scope = new Map(outer)
    for (const s of body)
      switch (s.kind) {
        case 'let':
          scope.set(s.name, this.#value(s.value, scope))
          break
        case 'assign':
          this.#assign(s.target, this.#value(s.value, scope), scope)
          break
        case 'assign_all': {
          const values = s.values.map((v) => this.#value(v, scope))
          s.targets.forEach((t, k) => void this.#assign(t, values[k]!, scope))
          break
        }
        case 'reduce':
          this.#reduce(s, scope)
          break
        case 'if':
          this.#body(this.#value(s.when, scope) ? s.then : s.otherwise, scope, reached)
          break
        case 'iterate':
          this.#iterate(s, scope, reached)
      }
  }

  #assign(target: Target, value: number, scope: Scope): void {
    const { type } = this.#buffers.get(target.buffer)!
    const values = this.#values.get(target.buffer)!
    const at = key(target.at.map((e) => this.#value(e, scope)))
    if (!values.has(at)) {
      this.#lost.add(target.buffer)
      return
    }
    values.set(at, isFloat(type) ? rounded(type, value) : value)
    this.#magnitude.set(`${target.buffer}:${at}`, Math.abs(value))
  }

  #reduce(s: Extract<Stmt, { kind: 'reduce' }>, scope: Scope): void {
    const operands = s.values.map((v) => this.#value(v, scope))
    const places = s.targets.map((t) => key(t.at.map((e) => this.#value(e, scope))))
    const held = s.targets.map((t, k) => this.#values.get(t.buffer)!.get(places[k]!))
    const monoid = this.#p.monoids.find((m) => m.name === s.reducer)
    if (held.some((h) => h === undefined)) {
      const types = s.targets.map((t) => this.#buffers.get(t.buffer)!.type)
      const nothing = operands.every(
        (x, k) => x === (monoid ? monoid.identity[k] : identityOf(s.reducer, types[k]!)),
      )
      if (!nothing) for (const t of s.targets) this.#lost.add(t.buffer)
      return
    }
    const combined = monoid
      ? monoid.combine(held as number[], operands)
      : [this.#combine(s.reducer, s.targets[0]!.buffer, places[0]!, held[0]!, operands[0]!)]
    s.targets.forEach((t, k) => void this.#values.get(t.buffer)!.set(places[k]!, combined[k]!))
  }

  #combine(reducer: string, buffer: string, at: string, held: number, x: number): number {
    const { type } = this.#buffers.get(buffer)!
    if (
      isFloat(type) &&
      (reducer === '+' || reducer === '*') &&
      Number.isFinite(x) &&
      Number.isFinite(held)
    ) {
      const before = this.#magnitude.get(`${buffer}:${at}`) ?? Math.abs(held)
      const after = reducer === '+' ? before + Math.abs(x) : Math.max(1, before) * Math.max(1, Math.abs(x))
      if (!Number.isInteger(x) || !Number.isInteger(held) || after > EXACT[type]!)
        throw new Inexact(`${held} ${reducer} ${x} in ${type}`)
      this.#magnitude.set(`${buffer}:${at}`, after)
    }
    const done = binary(reducer, computed(type), held, x)
    return isFloat(type) || type === 'bool' ? done : wrap(type, BigInt(done))
  }

  #value(e: Expr, scope: Scope): number {
    switch (e.kind) {
      case 'literal':
        return e.value
      case 'name':
        return scope.get(e.name)!
      case 'read': {
        const at = key(e.at.map((i) => this.#value(i, scope)))
        return this.#values.get(e.buffer)!.get(at) ?? this.#buffers.get(e.buffer)!.fill ?? 0
      }
      case 'cast': {
        const x = this.#value(e.of, scope)
        const y = cast(e.of.type, e.type, x)
        // What was rounded is combined in any order: only exact numbers go on.
        return isFloat(e.type) && !isFloat(e.of.type) ? exact(e.type, x) && y : y
      }
      case 'unary': {
        const x = this.#value(e.of, scope)
        return e.op === 'not' ? (x ? 0 : 1) : isFloat(e.type) ? -x : wrap(e.type, -BigInt(x))
      }
      case 'binary':
        return binary(e.op, e.a.type, this.#value(e.a, scope), this.#value(e.b, scope))
      case 'call':
        return call(
          e.fn,
          e.type,
          e.args.map((a) => this.#value(a, scope)),
        )
    }
  }
}

export const evaluate = (p: Program, data: Data): Result => new Evaluator(p, data).run()
