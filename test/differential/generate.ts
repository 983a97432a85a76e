/** Random programs with data: `Choices` of zeros give the simplest. */
import { type Coordinate, condition, type Readable, type Scope } from './expressions.ts'
import { InPlace } from './in-place.ts'
import type { Extent, Iteration, Iterator, Program, Stmt } from './model.ts'
import { computed } from './numbers.ts'
import type { Space } from './statements.ts'

export interface Case {
  readonly program: Program
  /** Values for two runs with one structure. */
  readonly data: readonly Map<string, readonly number[]>[]
  /** Whether infinities and NaN are among the values. */
  readonly special: boolean
}

export class Generator extends InPlace {
  generate(): Case {
    const c = this.c
    if (c.chance(30))
      this.scalars.push({ name: 'alpha', type: computed(this.float), value: c.pick([2, 0, -1, 3]) })
    if (c.chance(20)) this.scalars.push({ name: 'shift', type: 'i32', value: c.pick([1, 0, -2, 5]) })
    for (let k = 1 + c.below(2); k > 0; k--) this.chain()
    for (const chain of [...this.chains]) {
      this.input(chain.levels.map((l) => l.axis))
      if (c.chance(25)) this.input(chain.levels.slice(0, 1 + c.below(chain.levels.length)).map((l) => l.axis))
      if (c.chance(15))
        this.input([
          ...chain.levels.map((l) => l.axis),
          this.dense(
            this.extent(),
            chain.levels.map((l) => l.axis),
          ),
        ])
    }
    for (let k = 1 + c.below(3); k > 0; k--)
      this.input(
        this.distinct(Array.from({ length: c.below(5) === 4 ? 0 : 1 + c.below(2) }, () => this.extent())),
      )
    for (let k = 1 + c.below(4); k > 0; k--) this.iteration()
    const program: Program = {
      sizes: this.sizes,
      scalars: this.scalars,
      chains: this.chains,
      derived: this.derived,
      buffers: this.buffers,
      iterations: this.iterations,
      monoids: [...this.monoids],
    }
    return { program, data: [this.dataOf(program), this.dataOf(program)], special: this.special }
  }

  protected space(): Space {
    const c = this.c
    const trees = this.chains.filter((x) => x.levels.length > 1 || x.levels[0]!.kind !== 'dense_fixed')
    const iterators: Space['iterators'][number][] = []
    const coordinates: Coordinate[] = []
    let chain: Space['chain']
    const add = (axis: string, extent: Extent, alias = c.chance(20)): string => {
      const taken = coordinates.some((x) => x.name === axis)
      const name = alias || taken ? this.fresh('v') : axis
      iterators.push({ name, axis, of: [name] })
      coordinates.push({ name, axis, extent })
      return name
    }
    const kind = c.below(20)
    if (kind < 12) {
      const of = c.pick(trees)
      const depth = c.chance(25) ? 1 + c.below(of.levels.length) : of.levels.length
      for (const l of of.levels.slice(0, depth)) add(l.axis, l.extent)
      chain = { chain: of, depth }
    } else if (kind < 14) {
      const of = c.pick(trees)
      const depth = Math.max(Math.min(2, of.levels.length), 1 + c.below(of.levels.length))
      const levels = of.levels.slice(0, depth)
      if (levels.length > 1) {
        const axis = this.fresh('e')
        this.derived.push({ kind: 'fused', axis, over: levels.map((l) => l.axis) })
        iterators.push({ name: axis, axis, of: levels.map((l) => l.axis) })
        coordinates.push(...levels.map((l) => ({ name: l.axis, axis: l.axis, extent: l.extent })))
        chain = { chain: of, depth }
      } else add(levels[0]!.axis, levels[0]!.extent)
    } else if (kind < 16) {
      const from = c.pick(trees)
      for (const l of from.levels.slice(0, 2)) add(l.axis, l.extent, false)
      const last = coordinates.at(-1)!.extent.text
      const fitting = trees.filter((t) => t.levels.length > 1 && t.levels[0]!.extent.text === last)
      if (fitting.length > 0) {
        const to = c.pick(fitting)
        const axis = this.fresh('t')
        const base = to.levels[1]!
        this.derived.push({ kind: 'attached', axis, base: base.axis, parent: iterators.at(-1)!.axis })
        add(axis, base.extent)
      }
    } else if (kind < 18) {
      const base = this.dense(this.extent())
      const { extent } = this.level(base)
      const axis = this.fresh('g')
      const list = this.list(this.dense(this.extent()), extent.value)
      this.derived.push({ kind: 'gathered', axis, base, list })
      add(axis, extent)
      const hung = trees.filter((t) => t.levels[0]!.axis === base && t.levels.length > 1)
      if (hung.length > 0) {
        const child = c.pick(hung).levels[1]!
        const below = this.fresh('t')
        this.derived.push({ kind: 'attached', axis: below, base: child.axis, parent: axis })
        add(below, child.extent)
      }
    } else for (let k = 1 + c.below(2); k > 0; k--) this.addDense(add)
    if (c.chance(30)) this.addDense(add)
    return { iterators, coordinates, ...(chain ? { chain } : {}) }
  }

  protected addDense(add: (axis: string, extent: Extent) => void): void {
    const extent = this.extent()
    add(this.dense(extent), extent)
  }

  protected iteration(): void {
    const c = this.c
    const given = {
      c,
      float: computed(this.float),
      named: [...this.scalars, ...this.sizes.map((s) => ({ name: s.name, type: 'i32' as const }))],
      special: this.special,
    }
    if (c.chance(25)) return void this.iterations.push(this.inPlace(given))
    const space = this.space()
    const readable = this.buffers.map((b) => this.readable(b))
    const scope: Scope = { ...given, coordinates: space.coordinates, readable }
    const plain = (i: Space['iterators'][number]): boolean =>
      i.of.length === 1 &&
      !this.derived.some((d) => d.axis === i.axis) &&
      !this.chains.some((x) => x.levels.some((l) => l.axis === i.axis && l.nonunique))
    const nested = space.iterators.length > 1 && space.iterators.every(plain) && c.chance(20)
    this.iterations.push(nested ? this.nested(space, scope) : this.flat(space, scope))
  }

  protected flat(space: Space, scope: Scope): Iteration {
    const c = this.c
    const spatial = this.spatial(space)
    const written: Readable[] = []
    const whole = space.coordinates.every((x) => spatial.has(x.name))
    const seen = (): readonly Readable[] => (whole ? written : [])
    const body: Stmt[] = []
    for (let k = c.chance(25) ? 2 : 1; k > 0; k--)
      body.push(
        ...this.statement(space, { ...scope, readable: [...scope.readable, ...seen()] }, spatial, written),
      )
    return {
      kind: 'iterate',
      name: this.fresh('it'),
      iterators: this.modes(space, spatial),
      ...(c.chance(25) ? { where: condition(scope, 2) } : {}),
      body,
    }
  }

  /** An outer iteration over the first axis, with iterations inside that go on from what those before have made. */
  protected nested(space: Space, scope: Scope): Iteration {
    const c = this.c
    const [first, ...rest] = space.iterators
    const outer: Space = { iterators: [first!], coordinates: space.coordinates.slice(0, 1) }
    const written: Readable[] = []
    const body: Stmt[] = []
    for (let k = 1 + c.below(3); k > 0; k--) {
      const seen = { ...scope, readable: [...scope.readable, ...written] }
      const spatial = this.spatial(space)
      if (!spatial.has(first!.name)) spatial.add(first!.name)
      const made: Readable[] = []
      const all = rest.every((i) => i.of.every((n) => spatial.has(n)))
      const inner = this.statement(space, seen, spatial, made)
      body.push({
        kind: 'iterate',
        name: this.fresh('it'),
        iterators: this.modes({ ...space, iterators: rest }, spatial),
        ...(c.chance(15) ? { where: condition(seen, 2) } : {}),
        body: inner,
      })
      // Later iterations see what is complete: elements of the outer coordinate alone.
      if (!all)
        written.push(...made.filter((m) => m.only?.every((e) => e.kind === 'name' && e.name === first!.name)))
    }
    return {
      kind: 'iterate',
      name: this.fresh('it'),
      iterators: this.modes(outer, new Set([first!.name])),
      ...(c.chance(15) ? { where: condition({ ...scope, coordinates: outer.coordinates }, 2) } : {}),
      body,
    }
  }

  protected modes(space: Space, spatial: ReadonlySet<string>): Iterator[] {
    return space.iterators.map(({ name, axis, of }) => ({
      name,
      axis,
      mode: of.every((n) => spatial.has(n)) ? 'S' : 'R',
    }))
  }

  /** The coordinates that write elements of their own. */
  protected spatial(space: Space): Set<string> {
    const c = this.c
    // Coordinates that are listed may come twice.
    const listed = space.iterators.filter((i) =>
      this.derived.some((d) => d.axis === i.axis && d.kind === 'gathered'),
    )
    const all = space.coordinates.map((x) => x.name).filter((n) => !listed.some((i) => i.name === n))
    const repeated = space.chain?.chain.levels.slice(0, space.chain.depth).some((l) => l.nonunique)
    if (repeated) {
      // What is under several positions of one coordinate is told apart by all coordinates together.
      const whole = space.chain!.depth === space.chain!.chain.levels.length
      return new Set(whole && c.chance(50) ? all : all.slice(space.chain!.depth))
    }
    switch (c.below(8)) {
      case 0:
      case 1:
        return new Set(all)
      case 2:
        return new Set()
      default: {
        const some = space.iterators.filter((i) => !listed.includes(i) && c.chance(50))
        return new Set(some.flatMap((i) => i.of))
      }
    }
  }
}
