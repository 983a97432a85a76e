/** Resolution of names in a schedule: as written, or, inside of `each part of A as p`, to the names of one part. */

import { failAt } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { printLoop } from '../../ast/print/print.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { iterationsOf } from '../../ir/coordinates/stage1-tree.ts'
import { labelled } from '../../ir/formats/format-tables.ts'
import { memoize } from '../../ir/memoize.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { Kernel2 } from '../../ir/statements/loops.ts'
import { among } from '../refusals.ts'
import { axisOf, iterationsOver, loopOver, type StoredPart } from './parts.ts'

/** A kernel before a step. */
export interface Program {
  /** The kernel in Stage I. */
  readonly kernel: Kernel1
  /** The kernel in Stage II. */
  readonly loops: Kernel2
}

export interface Names {
  loop(r: Ast.LoopRef): string
  /** Returns the loops of a name in a list, in which a role stands for all of its loops. */
  loops(r: Ast.LoopRef): readonly string[]
  /** Returns a loop nest by the iteration or the step that created it. */
  nest(name: Ast.Ident): string
  buffer(name: Ast.Ident): string
  /** Returns the name of a new loop or buffer. */
  fresh(name: Ast.Ident, of: 'new loop' | 'new buffer'): string
  /** Returns the value of a constant of a part, such as `p.width`. */
  constant(e: Ast.Field): number
  /** Returns the loop of a name that a format made; in the schedule of a callee, of the call. */
  qualified(loop: string): string
  size(name: Ast.Ident): string
}

export const plainNames: Names = {
  loop: printLoop,
  loops: (r) => [printLoop(r)],
  nest: (name) => name.name,
  buffer: (name) => name.name,
  fresh: (name) => name.name,
  constant: (e) =>
    failAt('schedule/argument', e.span, {
      message: `${e.object.name} is not a part`,
      expected: 'a constant of a part, inside of each part of … as …',
    }),
  qualified: (loop) => loop,
  size: (name) => name.name,
}

interface KernelNames {
  readonly loops: ReadonlySet<string>
  readonly buffers: ReadonlySet<string>
}

/** Returns the names in a kernel. Cached, because every part of a buffer needs them. */
const namesIn = memoize(
  (kernel: Kernel2): KernelNames => ({
    loops: new Set(loopsOf(kernel.body).map((l) => l.name)),
    buffers: new Set(kernel.buffers.map((b) => b.name)),
  }),
)

/**
 * Returns the names in one part. `p` is the part's buffer, and buffers that share its structure keep their names. `p.io`
 * is a loop of the part: by the format's name, by a name that a step of the block created, or by the name of another
 * iterator if one iteration of the part has it. `sum` and `sum.f` are the part's copy of an iteration and a loop of the
 * copy. New names have the label of the part as a suffix.
 *
 * @param earlier names that earlier steps of the block created; the result's `made` has those of later steps, too
 */
export function partNames(
  as: string,
  part: StoredPart,
  { kernel, loops: nests }: Program,
  outer: Names,
  earlier: Iterable<string>,
): Names & { readonly made: ReadonlySet<string> } {
  const { loops, buffers } = namesIn(nests)
  const made = new Set(earlier)
  const { formats } = part
  const { text } = formats[0]!
  const own = (name: string): string => labelled(name, part.label)
  const loopName = (name: string): string | undefined =>
    made.has(name) ? own(name) : axisOf(part, kernel, name)

  /** A result of a step of the block, or a loop outside of the parts. */
  const bare = (r: Ast.LoopRef): string => {
    const { name } = r.name
    if (made.has(name)) return own(name)
    if (loops.has(name) || loopName(name) === undefined) return outer.loop(r)
    return failAt('schedule/unknown-loop', r.name.span, {
      message: `there is no loop ${name} outside of part ${part.buffer} (${text})`,
      expected: `${as}.${name}, the loop of each part`,
      hint: `write ${as}.${name} in this block`,
    })
  }

  const noLoop = (r: Ast.LoopRef, several: readonly string[]): never => {
    const what = `part ${part.buffer} (${text})`
    const { name } = r.name
    const isAxis = (x: string): boolean => formats.some((f) => [...f.names.values()].includes(x))
    const others = iterationsOver(part, kernel).flatMap((it) => it.iters.map((x) => x.name))
    const candidates = [
      ...new Set([...formats[0]!.names.keys(), ...made, ...others.filter((x) => !isAxis(x))]),
    ]
    if (several.length > 0)
      return failAt('schedule/ambiguous-loop', r.name.span, {
        message: `${several.length} iterations of ${what} have a loop ${name}: ${several.join(', ')}`,
        expected: `the name of the iteration in front: ITERATION.${name}`,
      })
    return failAt('schedule/unknown-loop', r.name.span, {
      message: `${what} has no loop ${name}`,
      ...among(name, candidates),
      hint: `each step is for every part; outside, loops of a part are called ${own(candidates[0]!)} and so on`,
    })
  }

  const nestOf = (name: Ast.Ident): string => {
    if (made.has(name.name)) return own(name.name)
    const iterations = iterationsOf(kernel.body)
    const copies = [name.name, outer.nest(name)].flatMap((n) => part.endings.map((e) => labelled(n, e)))
    return copies.find((copy) => iterations.some((it) => it.name === copy)) ?? outer.nest(name)
  }

  const loopOf = (r: Ast.LoopRef): string => {
    if (r.nest === null) return bare(r)
    const { name } = r.name
    const inPart = loopName(name)
    if (r.nest.name !== as) {
      const nest = nestOf(r.nest)
      return nest === r.nest.name ? outer.loop(r) : `${nest}.${inPart ?? name}`
    }
    if (inPart !== undefined) return outer.qualified(loopOver(part, kernel, inPart))
    const having = iterationsOver(part, kernel).flatMap((it) =>
      it.iters.some((x) => x.name === name) ? [it.name] : [],
    )
    if (having.length === 1) return `${having[0]!}.${name}`
    return having.length === 0 && loops.has(own(name)) ? own(name) : noLoop(r, having)
  }

  return {
    ...outer,
    made,
    loop: loopOf,
    loops: (r) => [loopOf(r)],
    nest: nestOf,
    buffer(name) {
      if (name.name === as) return part.buffer
      if (made.has(name.name)) return own(name.name)
      const whole = outer.buffer(name)
      const copies = part.endings.map((ending) => labelled(whole, ending))
      // Steps may have given each part a separate buffer in place of a common one.
      const divided = buffers.has(whole) ? undefined : copies.find((b) => buffers.has(b))
      return part.copies.get(whole) ?? divided ?? whole
    },
    fresh({ name }) {
      made.add(name)
      return own(name)
    },
    constant(e) {
      if (e.object.name !== as) return outer.constant(e)
      const { name, span } = e.field
      const known = formats.find((f) => f.constants.has(name))
      if (known) return known.constants.get(name)!
      const candidates = [...new Set(formats.flatMap((f) => [...f.constants.keys()]))]
      return failAt('schedule/no-constant', span, {
        message: `${text} has no constant ${name}`,
        ...among(name, candidates),
      })
    },
  }
}
