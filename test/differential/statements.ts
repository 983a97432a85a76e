/** Statements of generated programs: what they write, where, and from what. */
import type { Coordinate, Readable, Scope } from './expressions.ts'
import { cast, condition, coordinate, expression, int, nameable } from './expressions.ts'
import type { Buffer, Chain, Expr, Role, Stmt, Target } from './model.ts'
import { MONOIDS } from './monoids.ts'
import { computed, isFloat, type Type } from './numbers.ts'
import { Tensors } from './tensors.ts'

/** What an iteration runs over, before modes are given. */
export interface Space {
  readonly coordinates: readonly Coordinate[]
  /** Axes in the order of the iterators; of a fused one several coordinates. */
  readonly iterators: readonly {
    readonly name: string
    readonly axis: string
    readonly of: readonly string[]
  }[]
  /** The chain prefix among them, whose elements can be written. */
  readonly chain?: { readonly chain: Chain; readonly depth: number }
}

export class Statements extends Tensors {
  protected statement(space: Space, scope: Scope, spatial: ReadonlySet<string>, made: Readable[]): Stmt[] {
    const c = this.c
    const named = [...scope.named]
    const lets: Stmt[] = []
    while (c.chance(25)) {
      const l = { name: this.fresh('let_'), value: nameable({ ...scope, named }) }
      lets.push({ kind: 'let', ...l })
      named.push({ name: l.name, type: l.value.type })
    }
    const inner = { ...scope, named }
    const write = this.write(space, inner, spatial, made)
    if (!c.chance(20)) return [...lets, write]
    const otherwise = c.chance(50) ? [this.again(write, inner)] : []
    return [...lets, { kind: 'if', when: condition(inner, 2), then: [write], otherwise }]
  }

  /** Another value for what a statement writes. */
  protected again(s: Stmt, scope: Scope): Stmt {
    const again = (e: Expr): Expr => cast(e.type, expression(scope, computed(e.type), 1))
    if (s.kind === 'assign') return { ...s, value: again(s.value) }
    return s.kind === 'reduce' ? { ...s, values: s.values.map(again) } : s
  }

  protected write(space: Space, scope: Scope, spatial: ReadonlySet<string>, made: Readable[]): Stmt {
    const c = this.c
    const reduces = space.coordinates.some((x) => !spatial.has(x.name))
    const { axes, at } = this.place(space, scope, spatial)
    if (reduces && c.chance(12)) {
      const monoid = c.pick(MONOIDS)
      this.monoids.add(monoid)
      const targets = monoid.types.map((type) => this.target(axes, at, type, made))
      const values = monoid.types.map((type) => expression(scope, type, 2))
      return { kind: 'reduce', reducer: monoid.name, targets, values }
    }
    const old = this.buffers.filter(
      (b) =>
        (b.role === 'out' || b.role === 'inout') &&
        b.axes.join() === axes.join() &&
        !made.some((m) => m.buffer === b.name),
    )
    const again = old.length > 0 && c.chance(30) ? c.pick(old) : undefined
    const type = again?.type ?? this.type()
    const own: Readable[] = []
    const target = again ? { buffer: again.name, at } : this.target(axes, at, type, own)
    // Its own element may be read where each is written once.
    const self = again ? [{ ...this.readable(again), only: at }] : []
    const others = scope.readable.filter((r) => r.buffer !== target.buffer)
    const sees = { ...scope, readable: reduces ? others : [...others, ...self] }
    const value = cast(type, expression(sees, computed(type), 1 + c.below(3)))
    made.push(...own, ...self)
    if (!reduces && c.chance(65)) return { kind: 'assign', target, value }
    const reducers = type === 'bool' ? ['and', 'or'] : ['+', '+', '+', 'max', 'min', '*']
    return { kind: 'reduce', reducer: c.pick(reducers), targets: [target], values: [value] }
  }

  protected target(axes: readonly string[], at: readonly Expr[], type: Type, made: Readable[]): Target {
    const c = this.c
    const role = c.pick<Role>(['out', 'out', 'out', 'out', 'local', 'inout'])
    const wide = computed(type)
    const accumulate = wide !== type && isFloat(type) && c.chance(40) ? { accumulate: wide } : {}
    const fill = role !== 'inout' && c.chance(10) ? { fill: type === 'bool' ? 1 : 3 } : {}
    const buffer: Buffer = { name: this.fresh('C'), type, role, axes, ...fill, ...accumulate }
    this.buffers.push(buffer)
    made.push({ ...this.readable(buffer), only: at })
    return { buffer: buffer.name, at }
  }

  /** Axes of a target, and indices that use every spatial coordinate as it is. */
  protected place(space: Space, scope: Scope, spatial: ReadonlySet<string>): { axes: string[]; at: Expr[] } {
    const c = this.c
    const own = space.coordinates.filter((x) => spatial.has(x.name))
    const { chain } = space
    if (chain && c.chance(60)) {
      const twin = this.twins.get(chain.chain)
      const levels = (twin && c.chance(50) ? twin : chain.chain).levels.slice(0, chain.depth)
      const within = space.coordinates.slice(0, chain.depth)
      if (within.every((x) => spatial.has(x.name))) {
        const rest = own.filter((x) => !within.includes(x))
        return {
          axes: this.distinct(
            rest.map((x) => x.extent),
            levels.map((l) => l.axis),
          ),
          at: [...within, ...rest].map((x) => coordinate(x.name)),
        }
      }
    }
    const axes = this.distinct(own.map((x) => x.extent))
    const at: Expr[] = own.map((x) => coordinate(x.name))
    // What is combined may go anywhere, by an index that is computed.
    const free = space.coordinates.filter((x) => !spatial.has(x.name))
    if (free.length > 0 && c.chance(35)) {
      const x = c.pick(free)
      axes.push(this.dense(x.extent, axes))
      const lists = scope.readable.filter((r) => this.lists.has(r.buffer))
      at.push(
        c.chance(25) && lists.length > 0
          ? { kind: 'read', type: 'i32', buffer: c.pick(lists).buffer, at: [coordinate(x.name)] }
          : c.chance(25)
            ? { kind: 'binary', op: '/', type: 'i32', a: coordinate(x.name), b: int(2) }
            : coordinate(x.name),
      )
    }
    return { axes, at }
  }
}
