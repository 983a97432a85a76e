/**
 * Restricting a kernel to some coordinates of one axis. Sound where the coordinates do not see each other:
 * every top-level iteration runs over the axis with an S iterator, and every element that the kernel writes is
 * written and read at that iterator, bare, on the same dimension.
 */
import { type Axis, isFused, isStored, parentOf } from '../ir/axis.ts'
import type { Expr, Load } from '../ir/expr.ts'
import { walkExpr } from '../ir/expr-tree.ts'
import type { Iter, Kernel1, Stmt1 } from '../ir/stage1.ts'
import type { RefOptions } from './inputs-and-results.ts'

export interface Sampling {
  readonly axis: string
  readonly iters: ReadonlySet<Iter>
  /** For each buffer that is written, the dimension indexed by the axis. */
  readonly dims: ReadonlyMap<string, number>
}

/** The first root axis that the kernel can be restricted to, if there is one. */
export function samplingOf(kernel: Kernel1): Sampling | null {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  for (const a of kernel.axes) {
    const root = isStored(a) && parentOf(a) === null
    const found = root ? tryAxis(kernel, a.name, axes) : null
    if (found) return found
  }
  return null
}

function tryAxis(kernel: Kernel1, root: string, axes: ReadonlyMap<string, Axis>): Sampling | null {
  const iters = new Set<Iter>()
  const dims = new Map<string, number>()
  const written = new Set<string>()
  for (const s of kernel.body) for (const t of targetsOf(s)) written.add(t.buffer)
  for (const s of kernel.body) {
    if (s.kind !== 'iterate') return null
    const over = s.iters.find((it) => it.kind === 'S' && rootOf(axes.get(it.axis)) === root)
    if (!over) return null
    iters.add(over)
    const name = over.axis === root ? over.name : root
    if (rebinds(s.body, name)) return null
    const accesses = [...targetsOf(s), ...readsOf(s).filter((l) => written.has(l.buffer))]
    for (const access of accesses) {
      const dim = dims.get(access.buffer) ?? access.index.findIndex((e) => isBare(e, name))
      const index = access.index[dim]
      if (!index || !isBare(index, name)) return null
      dims.set(access.buffer, dim)
    }
  }
  return iters.size > 0 ? { axis: root, iters, dims } : null
}

const isBare = (e: Expr, name: string): boolean => e.kind === 'var' && e.name === name

const rootOf = (a: Axis | undefined): string | undefined => (isFused(a) ? a.members[0] : a?.name)

/** True where an inner iteration or `let` gives the name another meaning. */
function rebinds(body: readonly Stmt1[], name: string): boolean {
  return body.some((s) => {
    if (s.kind === 'let') return s.name === name
    if (s.kind === 'if') return rebinds(s.then, name) || rebinds(s.else, name)
    return (
      s.kind === 'iterate' &&
      (s.iters.some((it) => it.name === name || it.axis === name) || rebinds(s.body, name))
    )
  })
}

function targetsOf(s: Stmt1): Load[] {
  switch (s.kind) {
    case 'iterate':
      return s.body.flatMap(targetsOf)
    case 'if':
      return [...s.then, ...s.else].flatMap(targetsOf)
    case 'let':
      return []
    default:
      return [...s.targets]
  }
}

/** Every load, those in the indices of targets included. */
function readsOf(s: Stmt1): Load[] {
  const out: Load[] = []
  const look = (e: Expr): void =>
    walkExpr(e, (x) => {
      if (x.kind === 'load') out.push(x)
    })
  switch (s.kind) {
    case 'iterate':
      s.where.forEach(look)
      return [...out, ...s.body.flatMap(readsOf)]
    case 'if':
      look(s.cond)
      return [...out, ...[...s.then, ...s.else].flatMap(readsOf)]
    case 'let':
      look(s.value)
      return out
    default:
      for (const t of s.targets) t.index.forEach(look)
      s.values.forEach(look)
      return out
  }
}

/** A random subset of 0 … extent-1, ascending, at least one where there is any; the same for the same seed. */
export function pick(extent: number, options: NonNullable<RefOptions['sample']>): Int32Array {
  const wanted = options.count ?? Math.ceil(extent * (options.fraction ?? 1))
  const count = Math.min(extent, Math.max(1, wanted))
  let state = (options.seed ?? 0) >>> 0
  // mulberry32
  const random = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  // Knuth's selection sampling: each coordinate with the chance that makes every subset equally likely.
  const out: number[] = []
  for (let c = 0; c < extent && out.length < count; c++)
    if (random() * (extent - c) < count - out.length) out.push(c)
  return Int32Array.from(out)
}
