/**
 * Names inside of `each nest of C as p`: loops by their role in the writes of the loop nest, independent of formats, so
 * that one schedule fits any format.
 */

import { type LoopRole, rolesIn } from '../../analysis/loops/segmented-loops.ts'
import { failAt, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { orList } from '../../ast/diagnostics/suggest.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import type { Names } from './part-names.ts'

/** The roles that may follow `p.`; loops are ordered from the outside in. */
const ROLES: Readonly<Record<string, readonly LoopRole[]>> = {
  rows: ['rows'],
  scatter: ['scatter'],
  parallel: ['rows', 'scatter'],
  contiguous: ['contiguous'],
  reductions: ['reduction'],
}

/** Returns the names of the loop nests that write a buffer, in order. @throws SptError `schedule/no-nest` */
export function nestsWriting(
  { body }: Kernel2,
  buffer: { readonly name: string; readonly span?: Span | undefined },
): readonly string[] {
  const { name } = buffer
  const tops = body.filter((s): s is For => s.kind === 'for')
  const found = tops.filter((s) => writesOf([s]).has(name))
  if (found.length > 0) return [...new Set(found.map((s) => s.nest))]
  const candidates = [...writesOf(tops)]
  return failAt('schedule/no-nest', buffer.span, {
    message: `no loop nest writes ${name}`,
    expected: candidates.length > 0 ? orList(candidates) : 'a kernel with loops',
    lookup: { name, candidates },
  })
}

/**
 * Returns the names in one loop nest: the roles `p.rows`, `p.scatter`, `p.parallel` (both of these), `p.contiguous` and
 * `p.reductions`; a loop by its name (`p.io`); the loop nest (`p`). `several`: the steps apply to several loop nests,
 * and new buffers have the name of the loop nest as a suffix.
 */
export function nestNames(
  as: string,
  nest: string,
  { body }: Kernel2,
  outer: Names,
  made: Set<string>,
  several: boolean,
): Names {
  const tops = body.filter((s): s is For => s.kind === 'for' && s.nest === nest)
  const roleOf = new Map(tops.flatMap((t) => [...rolesIn(t)]))
  const own = (name: string): string => `${nest}.${name}`
  const ownBuffer = (name: string): string => (several ? `${name}_${nest}` : name)
  const loops = (r: Ast.LoopRef): readonly string[] => {
    const { name } = r.name
    if (r.nest === null) return [made.has(name) ? own(name) : outer.loop(r)]
    if (r.nest.name !== as) return [outer.loop(r)]
    if (!Object.hasOwn(ROLES, name)) return [own(name)]
    const roles = ROLES[name]!
    return loopsOf(tops).flatMap((l) => (roles.includes(roleOf.get(l.var)!) ? [own(l.name)] : []))
  }
  return {
    ...outer,
    loops,
    loop(r) {
      const all = loops(r)
      if (all.length === 1) return all[0]!
      const role = `${as}.${r.name.name}`
      return failAt(all.length === 0 ? 'schedule/no-role' : 'schedule/several-loops', r.span, {
        message:
          all.length === 0
            ? `loop nest ${nest} has no loop that is ${role}`
            : `${role} are ${all.length} loops of loop nest ${nest}: ${all.join(', ')}`,
        expected: 'one loop',
        hint: all.length === 0 ? 'spt show --stage 2 has the loops' : `fuse (${role}) -> one`,
      })
    },
    nest: (name) => (name.name === as ? nest : outer.nest(name)),
    buffer: (name) => (made.has(name.name) ? ownBuffer(name.name) : outer.buffer(name)),
    fresh({ name }, of) {
      made.add(name)
      return of === 'new loop' ? name : ownBuffer(name)
    },
  }
}
