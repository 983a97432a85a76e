/** Axes, buffers and values of generated programs. */
import type { Choices } from '../support/choices.ts'
import type { Readable } from './expressions.ts'
import type { Buffer, Chain, Derived, Extent, Iteration, Level, LevelKind, Monoid, Program } from './model.ts'
import { isFloat, type Type } from './numbers.ts'
import { elements } from './structure.ts'

export class Tensors {
  protected readonly c: Choices
  protected readonly float: Type
  protected readonly special: boolean
  protected readonly sizes: { name: string; value: number }[]
  protected readonly scalars: { name: string; type: Type; value: number }[] = []
  protected readonly chains: Chain[] = []
  /** Chains with other axes of the same extents, and with the same coordinates. */
  protected readonly twins = new Map<Chain, Chain>()
  protected readonly derived: Derived[] = []
  protected readonly buffers: Buffer[] = []
  protected readonly iterations: Iteration[] = []
  protected readonly monoids = new Set<Monoid>()
  /** Values of lists, which are indices. */
  protected readonly lists = new Map<string, number>()
  protected count = 0

  constructor(c: Choices, types: readonly Type[]) {
    this.c = c
    this.float = c.pick(types)
    this.special = c.chance(12)
    this.sizes = ['m', 'n', 'p'].map((name) => ({ name, value: c.pick([3, 4, 5, 2, 6, 7, 9, 1, 0]) }))
  }

  protected fresh(stem: string): string {
    return `${stem}${this.count++}`
  }

  // Axes and structures

  protected extent(): Extent {
    const { name, value } = this.c.pick(this.sizes)
    switch (this.c.below(12)) {
      case 9:
        return { text: `${name} + 1`, value: value + 1 }
      case 10:
        return { text: `ceildiv(${name}, 2)`, value: Math.ceil(value / 2) }
      case 11:
        return { text: '3', value: 3 }
      default:
        return { text: name, value }
    }
  }

  /** A dense axis of that extent that is none of `taken`: one that is there, or another one. */
  protected dense(extent: Extent, taken: readonly string[] = []): string {
    const roots = this.chains.filter(
      ({ levels: [l] }) =>
        l!.kind === 'dense_fixed' && l!.extent.text === extent.text && !taken.includes(l!.axis),
    )
    if (roots.length > 0 && !this.c.chance(15)) return this.c.pick(roots).levels[0]!.axis
    const axis = this.fresh('x')
    this.chains.push({ levels: [{ axis, kind: 'dense_fixed', extent }], stored: [] })
    return axis
  }

  /** Different dense axes after those. */
  protected distinct(extents: readonly Extent[], after: readonly string[] = []): string[] {
    const axes = [...after]
    for (const extent of extents) axes.push(this.dense(extent, axes))
    return axes
  }

  protected chain(): void {
    const c = this.c
    const depth = c.pick([2, 2, 2, 3, 3, 1])
    const levels: Level[] = []
    for (let d = 0; d < depth; d++) {
      const before = levels.at(-1)
      const kind: LevelKind =
        d === 0
          ? c.pick<LevelKind>(
              depth === 1 ? ['sparse_variable'] : ['dense_fixed', 'dense_fixed', 'sparse_variable'],
            )
          : c.pick<LevelKind>([
              'sparse_variable',
              'sparse_variable',
              'sparse_variable',
              'sparse_fixed',
              'dense_variable',
              'run',
              'dense_fixed',
              'bitmap',
            ])
      const sparse = kind === 'sparse_variable' || kind === 'sparse_fixed'
      const listed = before?.kind === 'sparse_variable' && !before.unordered
      const own: LevelKind = before?.nonunique
        ? listed && c.chance(50)
          ? 'singleton'
          : c.chance(70)
            ? 'sparse_fixed'
            : kind
        : kind
      const extent = own === 'bitmap' ? { text: '3', value: 3 } : this.extent()
      levels.push({
        axis: this.fresh('a'),
        kind: own,
        extent,
        ...(sparse && d < depth - 1 && c.chance(20) ? { nonunique: true } : {}),
        ...(sparse && c.chance(10) ? { unordered: true } : {}),
      })
    }
    const dense = levels.every((l) => l.kind === 'dense_fixed')
    const entries = dense || levels.some((l) => l.extent.value === 0) ? 0 : c.pick([5, 8, 3, 12, 1, 16, 0])
    const stored = new Map<string, number[]>()
    for (let k = 0; k < entries; k++) {
      const at = levels.map((l) => c.below(l.extent.value))
      stored.set(at.join(','), at)
    }
    const list = [...stored.values()]
    const widths = levels.map((l, d) => {
      if (l.kind === 'singleton') return { ...l, width: 1 }
      if (l.kind !== 'sparse_fixed') return l
      const under = new Map<string, Set<number>>()
      for (const s of list) {
        const k = s.slice(0, d).join(',')
        under.set(k, (under.get(k) ?? new Set()).add(s[d]!))
      }
      const need = Math.max(1, ...[...under.values()].map((u) => u.size))
      return { ...l, width: levels[d - 1]?.nonunique ? 1 + c.below(3) : need + c.below(2) }
    })
    const chain = { levels: widths, stored: list }
    this.chains.push(chain)
    if (dense || !c.chance(20)) return
    const twin = { levels: widths.map((l) => ({ ...l, axis: this.fresh('a') })), stored: list }
    this.chains.push(twin)
    this.twins.set(chain, twin)
  }

  // Buffers

  protected type(): Type {
    return this.c.pick<Type>([
      this.float,
      this.float,
      this.float,
      this.float,
      'i32',
      'i32',
      'i32',
      'f32',
      'u32',
      'i8',
      'u8',
      'bool',
      'f16',
      'bf16',
    ])
  }

  protected input(axes: readonly string[]): void {
    const type = this.type()
    const fill = axes.length > 0 && this.c.chance(10) ? { fill: type === 'bool' ? 1 : 2 } : {}
    this.buffers.push({ name: this.fresh('B'), type, role: 'in', axes, ...fill })
  }

  /** A list of coordinates of an axis. */
  protected list(over: string, limit: number): string {
    const name = this.fresh('L')
    this.buffers.push({ name, type: 'i32', role: 'in', axes: [over] })
    this.lists.set(name, limit)
    return name
  }

  protected level(axis: string): Level {
    return this.chains.flatMap((x) => x.levels).find((l) => l.axis === axis)!
  }

  protected readable(b: Buffer): Readable {
    return {
      buffer: b.name,
      type: b.type,
      dimensions: b.axes.map((axis) => ({ axis, extent: this.level(axis).extent })),
    }
  }

  // Values

  protected dataOf(p: Program): Map<string, readonly number[]> {
    return new Map(
      p.buffers
        .filter((b) => b.role === 'in' || b.role === 'inout')
        .map((b) => {
          const value = this.valuesOf(b)
          const present = storedIn(p, b)
          return [b.name, elements(p, b.axes).map((at) => (present(at) ? value() : (b.fill ?? 0)))]
        }),
    )
  }

  protected valuesOf(b: Buffer): () => number {
    const c = this.c
    const limit = this.lists.get(b.name)
    if (limit !== undefined) return () => c.below(limit)
    if (b.type === 'bool') return () => c.below(2)
    const edges = EDGES[b.type]
    const narrow = b.type === 'u8' || b.type === 'i8'
    if (!isFloat(b.type) && c.chance(narrow ? 60 : 25)) return () => c.pick(edges)
    if (isFloat(b.type) && this.special && c.chance(60))
      return () => c.pick([1, 0, -2, Infinity, -Infinity, NaN])
    return b.type === 'u8' || b.type === 'u32' ? () => c.below(4) : () => c.pick([1, 2, 3, -1, 0, -2, -3])
  }
}

const EDGES: Record<Type, readonly number[]> = {
  i32: [0, 1, -1, 2 ** 31 - 1, -(2 ** 31), 65536, 46341, -46341],
  u32: [0, 1, 2 ** 32 - 1, 2 ** 31, 65536],
  i8: [0, 1, -1, 127, -128, 20, 47],
  u8: [0, 1, 255, 128, 20, 47],
  bool: [0, 1],
  f64: [0],
  f32: [0],
  f16: [0],
  bf16: [0],
}

/** Whether a coordinate of a buffer is among those that are stored, and not only room in a block. */
export function storedIn(p: Program, b: Buffer): (at: readonly number[]) => boolean {
  const chain = p.chains.find((x) => x.levels[0]!.axis === b.axes[0])
  if (!chain || chain.levels.every((l) => l.kind === 'dense_fixed')) return () => true
  let depth = 0
  while (chain.levels[depth] && chain.levels[depth]!.axis === b.axes[depth]) depth++
  if (chain.levels.slice(0, depth).every((l) => l.kind === 'dense_fixed')) return () => true
  const there = new Set(chain.stored.map((s) => s.slice(0, depth).join(',')))
  return (at) => there.has(at.slice(0, depth).join(','))
}
