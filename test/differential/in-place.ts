/**
 * Generated iterations that go on from what they have written: several statements one after the other, with conditions,
 * names, tuples and iterations among them, on elements that the same statements read.
 */
import type { Coordinate, Readable, Scope } from './expressions.ts'
import { cast, condition, coordinate, expression, nameable } from './expressions.ts'
import type { Buffer, Iteration, Stmt, Target } from './model.ts'
import { computed } from './numbers.ts'
import { Statements } from './statements.ts'

/** The axes that are open, one inside of the other, and those that may be opened below. */
interface Place {
  readonly scope: Scope
  readonly open: readonly Coordinate[]
  readonly below: readonly Coordinate[]
}

export class InPlace extends Statements {
  /** Buffers of the iteration at hand, by how many of its axes they have. */
  #updated: Buffer[][] = []

  protected inPlace(scope: Omit<Scope, 'coordinates' | 'readable'>): Iteration {
    const c = this.c
    const axes = this.#axes()
    this.#updated = axes.map((_, d) => this.#buffers(axes.slice(0, d)))
    this.#updated.push(this.#buffers(axes))
    const readable = this.buffers
      .filter((b) => !this.#updated.flat().includes(b))
      .map((b) => this.readable(b))
    const here = { scope: { ...scope, coordinates: [], readable }, open: [], below: axes }
    return this.#iterate(c.chance(15) ? here : this.#opened(here), c.chance(15) ? 2 : 3)
  }

  /** A chain without coordinates that come twice, or dense axes. */
  #axes(): Coordinate[] {
    const c = this.c
    const trees = this.chains.filter((x) => x.levels.length > 1 && !x.levels.some((l) => l.nonunique))
    const levels =
      trees.length > 0 && c.chance(60)
        ? c.pick(trees).levels
        : this.distinct(Array.from({ length: 1 + c.below(3) }, () => this.extent())).map((a) => this.level(a))
    return levels.slice(0, 3).map(({ axis, extent }) => ({ name: axis, axis, extent }))
  }

  #buffers(axes: readonly Coordinate[]): Buffer[] {
    const c = this.c
    return Array.from({ length: 1 + c.below(2) }, () => {
      const type = c.chance(70) ? c.pick(['i32' as const, this.float]) : this.type()
      const buffer: Buffer = { name: this.fresh('U'), type, role: 'inout', axes: axes.map((a) => a.axis) }
      this.buffers.push(buffer)
      return buffer
    })
  }

  #opened({ scope, open, below }: Place): Place {
    const [next, ...rest] = below
    return { scope: { ...scope, coordinates: [...open, next!] }, open: [...open, next!], below: rest }
  }

  /** With the elements that are updated: each is read where it is written alone. */
  #seen({ scope, open }: Place): Scope {
    const own: Readable[] = this.#updated.slice(0, open.length + 1).flatMap((buffers, d) => {
      const only = open.slice(0, d).map((x) => coordinate(x.name))
      return buffers.map((b) => ({ ...this.readable(b), only }))
    })
    // What is written last is most telling.
    return { ...scope, readable: this.c.chance(50) ? own : [...scope.readable, ...own] }
  }

  /** Over what `inner` has opened last. */
  #iterate(inner: Place, depth: number): Iteration {
    const c = this.c
    const last = inner.open.at(-1)
    return {
      kind: 'iterate',
      name: this.fresh('it'),
      iterators: last ? [{ name: last.name, axis: last.axis, mode: 'S' }] : [],
      ...(c.chance(40) ? { where: condition(this.#seen(inner), 1) } : {}),
      body: this.#body(inner, depth - 1),
    }
  }

  #body(at: Place, depth: number): Stmt[] {
    const c = this.c
    const body: Stmt[] = []
    let here = at
    for (let n = 1 + c.below(3); n > 0; n--) {
      const deeper = depth > 0 && here.below.length > 0
      switch (c.below(8)) {
        case 0:
        case 1:
          if (deeper) body.push(this.#iterate(this.#opened(here), depth))
          else body.push(this.#assign(here))
          break
        case 2:
        case 3:
          if (depth === 0) body.push(this.#assign(here))
          else {
            const when = condition(this.#seen(here), 1)
            const then = this.#body(here, depth - 1)
            body.push({ kind: 'if', when, then, otherwise: c.chance(35) ? this.#body(here, depth - 1) : [] })
          }
          break
        case 4: {
          const value = nameable(this.#seen(here))
          const name = this.fresh('let_')
          body.push({ kind: 'let', name, value })
          const named = [...here.scope.named, { name, type: value.type }]
          here = { ...here, scope: { ...here.scope, named } }
          break
        }
        case 5:
          body.push(this.#reduced(here))
          break
        case 6: {
          const own = this.#updated[here.open.length]!
          const values = own.map((b) => this.#value(here, b))
          if (own.length > 1)
            body.push({ kind: 'assign_all', targets: own.map((b) => this.#element(here, b)), values })
          else body.push(this.#assign(here))
          break
        }
        default:
          body.push(this.#assign(here))
      }
    }
    // Names alone are no body.
    return body.every((s) => s.kind === 'let') ? [...body, this.#assign(here)] : body
  }

  #element({ open }: Place, b: Buffer): Target {
    return { buffer: b.name, at: open.map((x) => coordinate(x.name)) }
  }

  #value(at: Place, { type }: Buffer) {
    return cast(type, expression(this.#seen(at), computed(type), 1 + this.c.below(2)))
  }

  #assign(at: Place): Stmt {
    const b = this.c.pick(this.#updated[at.open.length]!)
    return { kind: 'assign', target: this.#element(at, b), value: this.#value(at, b) }
  }

  /** A reduction into one element, which the values do not read: over the axis below or some other one, or of one value. */
  #reduced(at: Place): Stmt {
    const c = this.c
    const b = c.pick(this.#updated[at.open.length]!)
    const reducer = c.pick(b.type === 'bool' ? ['and', 'or'] : ['+', '+', 'max', 'min'])
    const over = [...at.below.slice(0, 1), ...(c.chance(50) ? this.#another(at) : [])].at(-1)
    const scope = this.#seen(over ? { ...at, scope: { ...at.scope, coordinates: [...at.open, over] } } : at)
    const readable = scope.readable.filter((r) => r.buffer !== b.name)
    const value = cast(b.type, expression({ ...scope, readable }, computed(b.type), 1))
    const reduce: Stmt = { kind: 'reduce', reducer, targets: [this.#element(at, b)], values: [value] }
    if (!over) return reduce
    const iterators = [{ name: over.name, axis: over.axis, mode: 'R' as const }]
    return { kind: 'iterate', name: this.fresh('it'), iterators, body: [reduce] }
  }

  #another({ open }: Place): Coordinate[] {
    const extent = this.extent()
    const axis = this.dense(
      extent,
      open.map((x) => x.axis),
    )
    return [{ name: axis, axis, extent }]
  }
}
