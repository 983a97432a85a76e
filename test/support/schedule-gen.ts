/** Random schedules: candidate steps on whatever the kernel is now; those that are legal are kept. */
import { sparsityAttributes } from '../../src/analysis/sparsity/attributes.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { iterationsOf } from '../../src/ir/coordinates/stage1-tree.ts'
import type { AnyFormat } from '../../src/ir/formats/format.ts'
import { readsOf, writesOf } from '../../src/ir/statements/accesses.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { For } from '../../src/ir/statements/loops.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import type { CoordStep } from '../../src/schedule/coordinates/steps.ts'
import type { LoopRef } from '../../src/schedule/names/kernel-names.ts'
import { LOOP_STEPS } from '../../src/schedule/primitives.ts'
import { type LoopStep, printStep } from '../../src/schedule/steps/step-data.ts'
import type { Choices } from './choices.ts'
import { drawnStep } from './draw-step.ts'
import { argumentsFor } from './format-gen.ts'
import { withoutFormats } from './read-sample.ts'

export interface Scheduled {
  readonly compilation: Compilation
  /** Kinds of the accepted steps, by stage: `coords.fuse`, `fuse`. */
  readonly accepted: readonly string[]
  readonly trace: readonly string[]
}

/** Up to `steps` candidates; refusals have to be `SptError`s. */
export function schedule(
  c: Choices,
  start: Compilation,
  formats: ReadonlyMap<string, AnyFormat>,
  steps: number,
): Scheduled {
  return scheduled(
    c,
    start,
    formats,
    ({ tried }, most) => tried < most,
    () => c.below(steps + 1),
    (c, k) => loopSteps(c, k).map((s) => [s]),
  )
}

/** Up to `steps` candidates for loops on threads of a block, and for memory that they share. */
export function sharing(
  c: Choices,
  start: Compilation,
  formats: ReadonlyMap<string, AnyFormat>,
  steps: number,
): Scheduled {
  return scheduled(
    c,
    start,
    formats,
    ({ tried }, most) => tried < most,
    () => c.between(steps >> 1, steps),
    (c, k) => loopSteps(c, k, SHARING).map((s) => [s]),
  )
}

/**
 * Between `low` and `high` accepted steps, if the kernel has so many; those that belong together all or none, and some
 * that demand something of the sizes.
 */
export function longSchedule(
  c: Choices,
  start: Compilation,
  formats: ReadonlyMap<string, AnyFormat>,
  low: number,
  high: number,
): Scheduled {
  return scheduled(
    c,
    start,
    formats,
    ({ tried, accepted }, most) => accepted < most && tried < 3 * most,
    () => c.between(low, high),
    (c, k) => [c.chance(4) ? requirement(c, k) : loopSteps(c, k)],
  )
}

interface Progress {
  readonly tried: number
  readonly accepted: number
}

function scheduled(
  c: Choices,
  start: Compilation,
  formats: ReadonlyMap<string, AnyFormat>,
  goesOn: (progress: Progress, most: number) => boolean,
  amount: () => number,
  candidates: (c: Choices, k: Compilation) => readonly (readonly LoopStep[])[],
): Scheduled {
  let compilation = start
  const accepted: string[] = []
  const trace: string[] = []
  const attempt = (names: readonly string[], texts: readonly string[], f: () => Compilation): void => {
    try {
      const next = f()
      // Stage II is made from the new kernel: it has to exist.
      void next.loops
      compilation = next
      accepted.push(...names)
      trace.push(...texts)
    } catch (e) {
      if (!(e instanceof SptError)) throw withTrace(e, [...trace, `${texts.join('\n  ')}  (here)`])
    }
  }
  for (let n = c.pick([0, 0, 1, 2, 3]); n > 0; n--) {
    const s = coordStep(c, compilation, formats)
    const word = s?.kind === 'as' && s.live ? (s.for ? 'live for' : 'live') : s?.kind
    if (s) attempt([`coords.${word}`], [coordText(s)], () => compilation.onCoords(s))
  }
  const most = amount()
  for (let tried = 0; goesOn({ tried, accepted: accepted.length }, most); tried++)
    for (const group of candidates(c, compilation))
      attempt(
        group.map((s) => s.kind),
        group.map((s) => printStep(s)),
        () => group.reduce((k, s) => k.onLoop(s), compilation),
      )
  return { compilation, accepted, trace }
}

/** Steps for each part of a buffer that a step stored in a format, as a schedule's text says them. */
export function partSteps(c: Choices, start: Compilation, text: string): Scheduled {
  const { kernel } = start
  const its = iterationsOf(kernel.body)
  const stored = kernel.reformats.flatMap((r) => {
    const { label } = r.instance.parts.at(-1)!
    return its.some((it) => it.name.endsWith(label)) ? r.buffers.map((b) => ({ r, name: b.name })) : []
  })
  const accepted: string[] = []
  const trace: string[] = []
  let compilation = start
  if (stored.length === 0) return { compilation, accepted, trace }
  const { r, name } = c.pick(stored)
  const { parts } = r.instance
  const outs = kernel.buffers.filter((b) => b.role !== 'in').map((b) => b.name)
  const axes = parts.flatMap((p) => [...p.instance.names.keys()])
  const wide = parts.every((p) => p.instance.constants.has('width'))
  // Steps for parts name no format.
  const own = withoutFormats(text)
  const attempt = (step: string): void => {
    try {
      const program = parseProgram(`${own}\nschedule ${kernel.name}.parts {\n${step}\n}\n`)
      const next = program
        .kernel(kernel.name)
        .steps('parts')
        .reduce((k, s) => k.step(s), compilation)
      void next.loops
      compilation = next
      accepted.push(/^(each part|merge parts|\w+)/.exec(step)![0])
      trace.push(step)
    } catch (e) {
      if (!(e instanceof SptError)) throw withTrace(e, [...trace, `${step}  (this step)`])
    }
  }
  if (parts.length > 1 && c.chance(50)) {
    // Nests of one launch are on blocks, and what several of them update is safe.
    const safe = c.pick(['atomic', 'atomic', 'combine'])
    for (const out of outs) attempt(`${safe} ${out}`)
    const by = c.pick([2, 3, 1])
    const deep = c.chance(50)
    for (const s of compilation.loops.body)
      if (s.kind === 'for') {
        const on = `bind ${s.nest}.o to block.x, ${s.nest}.r to thread.x`
        if (deep) attempt(`split ${s.nest}.${s.name} by ${by} -> (o, r)\n${on}`)
        else attempt(`bind ${s.nest}.${s.name} to block.x`)
      }
    attempt(`merge parts of ${name}`)
    return { compilation, accepted, trace }
  }
  if (c.chance(60)) attempt(`${c.pick(['atomic', 'combine'])} ${c.pick(outs)}`)
  // What a part has no loop for is refused: the first attempts of several.
  for (const axis of c.shuffle([...new Set(axes)]).slice(0, 3)) {
    const by = wide && c.chance(60) ? `${c.pick([4, 1])} * p.width` : `${c.pick([2, 3, 1])}`
    const more = c.pick([
      '',
      '',
      `cache_write ${c.pick(outs)} at r in register`,
      `unroll p.${c.pick(axes)}`,
      'cache_read p at r in register',
    ])
    attempt(`each part of ${name} as p {
  split p.${axis} by ${by} -> (o, r)
  ${c.pick(['bind o to block.x, r to thread.x', 'bind r to thread.x', 'bind o to block.x'])}
  ${more}
}`)
  }
  return { compilation, accepted, trace }
}

export function withTrace(e: unknown, trace: readonly string[]): Error {
  const stackOf = (x: unknown): string => (x instanceof Error ? (x.stack ?? x.message) : String(x))
  const cause = e instanceof Error && e.cause !== undefined ? `\n${stackOf(e.cause)}` : ''
  const text = `${stackOf(e)}${cause}`
  return new Error(`under the schedule\n  ${trace.join('\n  ')}\n${text}`)
}

const coordText = (s: CoordStep): string =>
  s.kind === 'as'
    ? `${s.buffer} as ${s.format.name}(${s.args.join(', ')})${s.live ? ` live in place${s.for ? ` for ${s.for.join(', ')}` : ''}` : ''}`
    : s.kind === 'attach'
      ? `attach ${s.loop} to ${s.to}`
      : s.kind === 'mask'
        ? `mask ${s.nest} by ${s.buffer}`
        : s.kind === 'drop'
          ? `drop ${s.nest}`
          : `${s.kind} (${s.loops.join(', ')})`

function coordStep(
  c: Choices,
  k: Compilation,
  formats: ReadonlyMap<string, AnyFormat>,
): CoordStep | undefined {
  const kernel = k.kernel
  const its = iterationsOf(kernel.body)
  const it = its.length > 0 ? c.pick(its) : undefined
  const names = it?.iters.map((x) => (its.length > 1 ? `${it.name}.${x.name}` : x.name)) ?? []
  const only = it?.body.length === 1 ? it.body[0] : undefined
  const joins = only?.kind === 'if' && only.cond.kind === 'binary' && only.cond.op === 'eq'
  switch (
    c.pick(
      joins
        ? (['attach'] as const)
        : (['as', 'reorder', 'fuse', 'attach', 'as', 'mask', 'drop', 'live'] as const),
    )
  ) {
    case 'as': {
      const sparse = kernel.buffers.filter((b) => b.axes.length > 1)
      if (sparse.length === 0) return undefined
      const format = c.pick([...formats.values()])
      const args = argumentsFor(c, format)
      return { kind: 'as', buffer: c.pick(sparse).name, format, args }
    }
    case 'live': {
      // Found in each run, by formats that can be; what may go over the same lists does, some of the time.
      const dense = kernel.buffers.filter((b) => b.axes.length === 2 && b.role !== 'out')
      const found = ['csr', 'bsr', 'panels', 'sr_bcrs'].flatMap((name) => formats.get(name) ?? [])
      if (dense.length === 0 || found.length === 0) return undefined
      const format = c.pick(found)
      const buffer = c.pick(dense).name
      const able = sparsityAttributes(kernel).iterations.filter((x) => x.masks.some((m) => m.mask === buffer))
      const named = able.map((x) => x.name).filter(() => c.chance(70))
      const on = { buffer, format, args: argumentsFor(c, format) }
      return { kind: 'as', ...on, live: 'live in place', ...(named.length > 0 && { for: named }) }
    }
    case 'drop': {
      const needless = sparsityAttributes(kernel).iterations.filter((x) => x.isDead)
      return it && { kind: 'drop', nest: needless.length > 0 ? c.pick(needless).name : it.name }
    }
    case 'reorder':
      return names.length > 1 ? { kind: 'reorder', loops: c.shuffle(names) } : undefined
    case 'fuse': {
      const at = c.below(Math.max(1, names.length - 1))
      return names.length > 1 ? { kind: 'fuse', loops: names.slice(at, at + 2 + c.below(2)) } : undefined
    }
    case 'mask':
      return it && kernel.buffers.length > 0
        ? { kind: 'mask', nest: it.name, buffer: c.pick(kernel.buffers).name }
        : undefined
    case 'attach':
      return names.length > 2 ? { kind: 'attach', loop: names.at(-1)!, to: names.at(-3)! } : undefined
  }
}

const BLOCKS = ['block.x', 'block.y', 'block.z'] as const
const THREADS = ['thread.x', 'thread.y', 'thread.z'] as const

/** What a candidate does to the loops, where a step alone would be refused too often. */
const WAYS = [
  'parallel',
  'threads',
  'split',
  'bind',
  'reorder',
  'fuse',
  'serpentine',
  'tile',
  'unroll',
  'vectorize',
  'cache_read',
  'cache_write',
  'compute_at',
  'fission',
  'rfactor',
  'atomic',
  'cache_read',
  'cache_write',
  'block',
  'scatter',
  'fission',
  'compute_at',
  'compute_at',
  'compute_inline',
  'pipeline',
  'accumulate',
  'combine',
  'merge',
  'join',
  'partial',
] as const

type Way = (typeof WAYS)[number]

/** What one draw does not make: it needs a declared instruction, blocks that copy alike, or data for which it holds. */
const APART = ['tensorize', 'cluster', 'require']
/** Words that need nothing else: each is drawn from what it takes. */
const WORDS = Object.values(LOOP_STEPS).filter(
  ({ word }) => !APART.includes(word) && !(WAYS as readonly string[]).includes(word),
)

/** Dealing loops out to threads, and what threads share. */
const SHARING: readonly Way[] = [
  'threads',
  'threads',
  'bind',
  'bind',
  'cache_read',
  'cache_write',
  'parallel',
  'scatter',
  'block',
]

/** One step, or a few that belong together. */
function loopSteps(c: Choices, k: Compilation, among: readonly Way[] = WAYS): LoopStep[] {
  const body = k.loops.body
  const loops = loopsOf(body)
  if (loops.length === 0) return []
  const named = (l: For): string => `${l.nest}.${l.name}`
  // By name where one loop has it, so that the trace is a text that says the same.
  const ref = (l: For): LoopRef =>
    loops.filter((x) => named(x) === named(l)).length === 1 ? named(l) : { var: l.var }
  const free = loops.filter((l) => l.mode.kind === 'serial')
  const any = (): For => c.pick(free.length > 0 ? free : loops)
  const buffers = k.loops.buffers.filter((b) => b.role !== 'index').map((b) => b.name)
  const all = k.loops.buffers.map((b) => b.name)
  const locals = k.loops.buffers.filter((b) => b.role === 'out' || b.role === 'inout' || b.role === 'local')
  // What the loop reads or writes, where there is any of it.
  const touched = (l: For, mode: 'read' | 'write', among: readonly string[]): string => {
    const names = mode === 'read' ? readsOf(l.body) : writesOf(l.body)
    const own = among.filter((b) => names.has(b))
    return c.pick(own.length > 0 ? own : among)
  }
  const nests = [...new Set(loops.map((l) => l.nest))]
  const child = (l: For): For | undefined =>
    l.body.find((s): s is For => s.kind === 'for' && s.mode.kind === 'serial')
  const scope = (): 'register' | 'shared' => c.pick(['register', 'shared'])
  const chain = (l: For, most: number): For[] => {
    const out = [l]
    for (let next = child(l); next && out.length < most; next = child(next)) out.push(next)
    return out
  }
  const split = (l: For, by: number): LoopStep => ({
    kind: 'split',
    loop: ref(l),
    by,
    into: [`${l.var}_a`, `${l.var}_b`],
  })
  const how = c.pick(among === WAYS ? [...WAYS, ...WORDS] : among)
  if (typeof how === 'object')
    return [
      drawnStep(how, {
        below: (n) => c.below(n),
        loop: () => ref(any()),
        buffer: () => c.pick(buffers),
        nest: () => c.pick(nests),
      }),
    ]
  switch (how) {
    case 'parallel': {
      // The outermost loop over blocks of threads.
      const l = free.find((x) => !x.reduce) ?? any()
      const by = c.pick([2, 4, 3, 1])
      return [
        split(l, by),
        {
          kind: 'bind',
          bindings: [
            { loop: `${l.nest}.${l.var}_a`, to: c.pick(BLOCKS) },
            { loop: `${l.nest}.${l.var}_b`, to: c.pick(THREADS) },
          ],
        },
      ]
    }
    case 'threads': {
      // A strip of any loop, reductions too, over threads.
      const l = any()
      return [
        split(l, c.pick([2, 4, 3, 1])),
        { kind: 'bind', bindings: [{ loop: `${l.nest}.${l.var}_b`, to: c.pick(THREADS) }] },
      ]
    }
    case 'block':
      return [{ kind: 'bind', bindings: [{ loop: ref(free[0] ?? loops[0]!), to: c.pick(BLOCKS) }] }]
    case 'scatter': {
      const l = any()
      return [
        ...(locals.length > 0 ? [{ kind: 'atomic', buffer: c.pick(locals).name } as const] : []),
        { kind: 'bind', bindings: [{ loop: ref(l), to: c.pick([...BLOCKS, ...THREADS]) }] },
      ]
    }
    case 'split':
      return [split(any(), c.pick([2, 3, 4, 1]))]
    case 'bind':
      return [{ kind: 'bind', bindings: [{ loop: ref(any()), to: c.pick([...THREADS, ...BLOCKS]) }] }]
    case 'reorder':
      return [{ kind: 'reorder', loops: c.shuffle(chain(any(), 2 + c.below(3))).map(ref) }]
    case 'serpentine':
      return [{ kind: 'serpentine', loop: ref(any()), by: c.pick([2, 3, 4]) }]
    case 'fuse':
      return [{ kind: 'fuse', loops: chain(any(), 2 + c.below(2)).map(ref) }]
    case 'tile': {
      const list = chain(any(), 2)
      return [{ kind: 'tile', loops: list.map(ref), by: list.map(() => c.pick([2, 3, 1])) }]
    }
    case 'unroll':
      return [
        {
          kind: 'unroll',
          loop: ref(any()),
          ...(c.chance(60) ? { by: 2 + c.below(2), ...(c.chance(30) ? { predicated: true } : {}) } : {}),
        },
      ]
    case 'vectorize': {
      const l = any()
      if (c.chance(70)) return [split(l, c.pick([2, 4])), { kind: 'vectorize', loop: `${l.nest}.${l.var}_b` }]
      return [{ kind: 'vectorize', loop: ref(l) }]
    }
    case 'cache_read': {
      const l = c.pick(loops)
      const buffer = touched(l, 'read', c.chance(20) ? all : buffers)
      return [{ kind: 'cache_read', buffer, at: ref(l), scope: scope(), ...layout(c) }]
    }
    case 'pipeline': {
      // What the rest of an innermost loop reads, copied ahead.
      const leaves = free.filter((x) => loopsOf(x.body).length === 0)
      const l = leaves.length > 0 ? c.pick(leaves) : any()
      const outer = `${l.nest}.${l.var}_a`
      const around = loops.findLast((x) => x !== l && loopsOf(x.body).includes(l) && x.mode.kind === 'serial')
      const goingOn = around && c.chance(50) ? { over: ref(around) } : {}
      return [
        split(l, c.pick([2, 4, 3, 1])),
        { kind: 'cache_read', buffer: touched(l, 'read', buffers), at: outer, scope: 'shared', ...layout(c) },
        { kind: 'pipeline', loop: outer, by: 2 + c.below(3), ...goingOn },
      ]
    }
    case 'cache_write': {
      const l = c.pick(loops)
      const among = locals.map((b) => b.name)
      if (among.length === 0) return []
      return [{ kind: 'cache_write', buffer: touched(l, 'write', among), at: ref(l), scope: scope() }]
    }
    case 'compute_at': {
      // The first nest where a later one needs it, or the last where an earlier one has made what it needs.
      const nest = c.chance(60) ? nests[0]! : nests.at(-1)!
      const others = loops.filter((l) => l.nest !== nest)
      return [{ kind: 'compute_at', nest, at: ref(c.pick(others.length > 0 ? others : loops)) }]
    }
    case 'compute_inline':
      return [{ kind: 'compute_inline', nest: c.pick(nests), ...(c.chance(60) ? { recompute: true } : {}) }]
    case 'fission': {
      const several = loops.filter((l) => l.body.length > 1)
      const l = c.pick(several.length > 0 ? several : loops)
      return [{ kind: 'fission', loop: ref(l), after: c.chance(30) ? c.pick(nests) : 1 + c.below(2) }]
    }
    case 'rfactor':
      return [
        {
          kind: 'rfactor',
          loop: ref(c.pick(loops.filter((l) => l.reduce).length > 0 ? loops.filter((l) => l.reduce) : loops)),
        },
      ]
    case 'partial': {
      // Shares of a chain of reductions, each with partial results of its own.
      const list = chain(
        c.pick(loops.filter((x) => x.reduce).length > 0 ? loops.filter((x) => x.reduce) : loops),
        2,
      )
      const fused = list.length > 1 ? `${list[0]!.var}_f` : list[0]!.name
      const { nest } = list[0]!
      return [
        ...(list.length > 1 ? [{ kind: 'fuse', loops: list.map(ref), into: fused } as const] : []),
        { kind: 'split', loop: `${nest}.${fused}`, by: 2 + c.below(3), into: [`${fused}_a`, `${fused}_b`] },
        { kind: 'rfactor', loop: `${nest}.${fused}_${c.pick(['b', 'a'])}` },
      ]
    }
    case 'atomic':
    case 'combine': {
      return locals.length > 0 ? [{ kind: how, buffer: c.pick(locals).name }] : []
    }
    case 'accumulate': {
      // A share of the positions for each thread.
      const l = c.pick(loops.filter((x) => x.reduce).length > 0 ? loops.filter((x) => x.reduce) : loops)
      const buffer = locals.length > 0 ? c.pick(locals).name : 'C'
      const name = `${l.nest}.${l.var}`
      const into = {
        ...(c.chance(30) ? { by: c.pick([2, 1, 3]) } : {}),
        ...(c.chance(30) ? { into: `${buffer}_rest` } : {}),
      }
      if (c.chance(60))
        return [
          split(l, 2 + c.below(3)),
          { kind: 'atomic', buffer },
          { kind: 'bind', bindings: [{ loop: `${name}_a`, to: c.pick([...BLOCKS]) }] },
          { kind: 'accumulate', buffer, loop: `${name}_b`, ...into },
        ]
      // The shares of a block, side by side.
      const groups = { loop: `${name}_a_b`, to: c.pick(THREADS) }
      return [
        split(l, 2 + c.below(3)),
        { kind: 'atomic', buffer },
        { kind: 'split', loop: `${name}_a`, by: 2 + c.below(3), into: [`${l.var}_a_a`, `${l.var}_a_b`] },
        { kind: 'bind', bindings: [groups] },
        { kind: 'accumulate', buffer, loop: `${name}_b`, within: groups.loop, ...into },
      ]
    }
    case 'join': {
      // Loops of several nests, bound alike or not at all: splits before are mostly in the way.
      const top = body.flatMap((s) => (s.kind === 'for' ? [s] : []))
      const own = c.pick(top)
      return top.length > 1
        ? [
            {
              kind: 'join',
              nests: c.shuffle(top.map((t) => t.nest)).slice(0, 2 + c.below(2)),
              at: ref(c.pick(chain(own, 2))),
            },
          ]
        : []
    }
    case 'merge':
      return nests.length > 1 ? [{ kind: 'merge', nests: c.shuffle(nests).slice(0, 2 + c.below(2)) }] : []
  }
}

function requirement(c: Choices, k: Compilation): LoopStep[] {
  const sizes = k.loops.params.filter((p) => p.kind === 'size').map((p) => p.name)
  if (sizes.length === 0) return []
  const exact = c.chance(30)
  const by = c.pick([2, 4, 3])
  return [{ kind: 'require', size: c.pick(sizes), relation: exact ? 'equal' : 'multiple', by }]
}

/** Mostly none: what has no layout refuses one. */
const layout = (c: Choices) => ({
  ...(c.chance(20) ? { padded: c.below(2) } : {}),
  ...(c.chance(10) ? { transposed: true } : {}),
  ...(c.chance(10) ? { stride: 2 + c.below(6) } : {}),
  ...(c.chance(10) ? { by: 2 } : {}),
})
