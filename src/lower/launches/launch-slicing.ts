/**
 * Launch fission by program slicing, for devices with few bindings per launch. Stage III → Stage III. A launch with too many buffers
 * becomes several launches on the same grid. Each contains the slice for some of the written buffers. Written buffers that depend on each
 * other stay in one launch.
 */

import { buffersRead, freeVars } from '../../ir/expressions/expr-tree.ts'
import { readsOf, targetsOf, writesOf } from '../../ir/statements/accesses.ts'
import type { Launch, Plan, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, exprsOf, someStmt, withBodies } from '../../ir/statements/tree.ts'

/**
 * Returns the slices of a launch, each within the limit if dependences allow; only the launch itself if it cannot or need not be split.
 */
export function slicesOf(
  plan: Plan,
  launch: Launch,
  fits: (slice: Launch) => boolean,
  nameOf: (base: string) => string,
): readonly Launch[] {
  // Launches with instruction calls are not split.
  if (fits(launch) || someStmt(launch.body, (s) => s.kind === 'instr')) return [launch]
  const groups = dependentGroups(plan, launch)
  const bins: ReadonlySet<string>[] = []
  for (const group of groups) {
    const at = bins.findIndex((bin) => fits(sliceFor(launch, new Set([...bin, ...group]))))
    if (at < 0) bins.push(group)
    else bins[at] = new Set([...bins[at]!, ...group])
  }
  if (bins.length < 2) return [launch]
  return bins.map((bin, k) => ({
    ...sliceFor(launch, bin),
    name: k === 0 ? launch.name : nameOf(launch.name),
  }))
}

/** Partitions the written buffers of a launch into groups that depend on each other or are written together. */
function dependentGroups(plan: Plan, launch: Launch): readonly ReadonlySet<string>[] {
  const planBuffers = new Set(plan.buffers.map((b) => b.name))
  const written = [...writesOf(launch.body)].filter((b) => planBuffers.has(b))
  const groupOf = new Map(written.map((b) => [b, new Set([b])]))
  const join = (a: string, b: string): void => {
    const [x, y] = [groupOf.get(a)!, groupOf.get(b)!]
    if (x === y) return
    for (const name of y) groupOf.set(name, x.add(name))
  }
  for (const b of written) {
    const slice = sliceFor(launch, new Set([b]))
    for (const used of [...readsOf(slice.body), ...writesOf(slice.body)]) if (groupOf.has(used)) join(b, used)
  }
  return [...new Set(groupOf.values())]
}

/** Returns the backward slice of the launch for these written buffers; barriers are kept. */
function sliceFor(launch: Launch, kept: ReadonlySet<string>): Launch {
  const needed = new Set(kept)
  const isKept = (s: Stmt): boolean => {
    switch (s.kind) {
      case 'barrier':
        return true
      case 'let':
        return needed.has(s.name)
      case 'alloc':
        return needed.has(s.buffer.name)
      case 'vector_load':
        return s.names.some((name) => needed.has(name))
      default:
        return targetsOf(s).some((t) => needed.has(t.buffer)) || bodiesOf(s).some((b) => b.some(isKept))
    }
  }
  const mark = (body: Body): void => {
    for (const s of body) {
      if (!isKept(s)) continue
      for (const e of exprsOf(s)) for (const name of [...freeVars(e), ...buffersRead(e)]) needed.add(name)
      for (const t of targetsOf(s)) needed.add(t.buffer)
      for (const b of bodiesOf(s)) mark(b)
    }
  }
  for (let before = -1; before < needed.size; ) {
    before = needed.size
    mark(launch.body)
  }
  const slice = (body: Body): Body =>
    body.flatMap((s): Body => (isKept(s) ? [withBodies(s, bodiesOf(s).map(slice))] : []))
  return { ...launch, body: slice(launch.body) }
}
