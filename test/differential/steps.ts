/** Random steps by the public API: what is refused is passed over, what is accepted must not change a result. */
import { type Kernel, SptError } from '../../src/node.ts'
import type { Choices } from '../support/choices.ts'
import { formatFor } from './formats.ts'
import type { Program } from './model.ts'

export interface Attempts {
  /** Called before each step, with what has been accepted and what is tried. */
  readonly trying?: (trace: readonly string[], step: string) => void
  /** Called with the code of each refusal. */
  readonly refused?: (step: string, code: string) => void
}

const found = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map((m) => m[2] ?? m[1]!)

/** Loops by names that are unambiguous, as `show` prints them. */
const loopsOf = (k: Kernel): string[] => [...new Set(found(k.show(2), /\bfor (\w+)(?: \(([\w.]+)\))? in /g))]
/** Iterators with their iterations. */
function iteratorsOf(k: Kernel): string[][] {
  return [...k.show(1).matchAll(/iterate (\w+) \[(.*?)\]/g)].map((m) =>
    m[2]!
      .split(', ')
      .filter(Boolean)
      .map((i) => `${m[1]}.${i.split(' in ')[0]}`),
  )
}
const buffersOf = (k: Kernel): string[] => found(k.show(2), /^ {2}(\w+): /gm)

/** The steps of one schedule; `count` attempts. */
export function scheduled(
  c: Choices,
  kernel: Kernel,
  p: Program,
  count: number,
  attempts: Attempts = {},
): Kernel {
  let k = kernel
  const attempt = (name: string, step: (k: Kernel) => Kernel): boolean => {
    attempts.trying?.(k.trace, name)
    try {
      const next = step(k)
      // Later stages refuse here what cannot be lowered.
      next.show(2)
      k = next
      return true
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      attempts.refused?.(name, e.diagnostics[0]!.code)
      return false
    }
  }
  onCoordinates(c, () => k, p, attempt)
  for (let n = 0; n < count; n++) onLoops(c, () => k, p, attempt)
  return k
}

type Attempt = (name: string, step: (k: Kernel) => Kernel) => boolean

function onCoordinates(c: Choices, now: () => Kernel, p: Program, attempt: Attempt): void {
  for (const chain of p.chains) {
    const rank = chain.levels.length
    const stored = p.buffers.find(
      (b) =>
        b.axes.length === rank &&
        b.axes[0] === chain.levels[0]!.axis &&
        b.axes.at(-1) === chain.levels.at(-1)!.axis,
    )
    if (!stored || rank < 2 || !c.chance(60)) continue
    const format = formatFor(c, rank)
    attempt(`${stored.name} as ${format}`, (k) => k.as(stored.name, format))
  }
  for (let n = c.below(4); n > 0; n--) {
    const iterations = iteratorsOf(now())
    const its = c.pick(iterations)
    if (!its || its.length === 0) continue
    const from = c.below(its.length)
    const some = its.slice(from, from + 2 + c.below(2))
    if (c.chance(30)) attempt(`fuse ${some}`, (k) => k.fuse(some))
    else if (c.chance(10)) attempt(`attach ${some}`, (k) => k.attach(its.at(-1)!, its[0]!))
    else {
      const order = c.shuffle(some)
      attempt(`reorder ${order}`, (k) => k.reorder(...order))
    }
  }
}

const AXES = ['block.x', 'thread.x', 'block.y', 'thread.y', 'block.z', 'thread.z'] as const

function onLoops(c: Choices, now: () => Kernel, p: Program, attempt: Attempt): void {
  const loops = loopsOf(now())
  if (loops.length === 0) return
  const loop = c.pick(loops)
  const buffer = c.pick(buffersOf(now()))
  const outputs = p.buffers.filter((b) => b.role !== 'in').map((b) => b.name)
  const output = c.chance(70) ? c.pick(outputs) : c.pick(buffersOf(now()))
  const by = c.pick([2, 4, 1, 3, 8])
  const nests = [...new Set(found(now().show(1), /iterate (\w+) \[/g))]
  const neighbours = (n: number): string[] => loops.slice(loops.indexOf(loop), loops.indexOf(loop) + n)
  switch (c.below(28)) {
    case 0:
    case 1:
      attempt(`split ${loop} by ${by}`, (k) => k.split(loop, by))
      return
    case 2: {
      // A grid: blocks of threads.
      const [o, i] = [`${loop.replace('.', '_')}_b`, `${loop.replace('.', '_')}_t`]
      const d = c.pick(['x', 'y'] as const)
      attempt(`split ${loop} by ${by} -> (${o}, ${i}); bind`, (k) =>
        k.split(loop, by, [o, i]).bind({ [o]: `block.${d}`, [i]: `thread.${d}` }),
      )
      return
    }
    case 3:
    case 4: {
      const axis = c.pick(AXES)
      attempt(`bind ${loop} to ${axis}`, (k) => k.bind([[loop, axis]]))
      return
    }
    case 5:
      attempt(`reorder ${neighbours(2)}`, (k) => k.reorder(...neighbours(2).toReversed()))
      return
    case 6: {
      const order = c.shuffle(neighbours(3))
      attempt(`reorder ${order}`, (k) => k.reorder(...order))
      return
    }
    case 7:
      attempt(`fuse ${neighbours(2)}`, (k) => k.fuse(neighbours(2)))
      return
    case 8:
      attempt(`tile ${neighbours(2)}`, (k) => k.tile(neighbours(2), [by, c.pick([2, 4, 3])]))
      return
    case 9: {
      const some = c.pick([undefined, 2, 4, 3])
      const predicated = some !== undefined && c.chance(40)
      attempt(`unroll ${loop} by ${some}${predicated ? ' predicated' : ''}`, (k) =>
        k.unroll(loop, some, { predicated }),
      )
      return
    }
    case 10:
      attempt(`vectorize ${loop}`, (k) => k.vectorize(loop))
      return
    case 11: {
      const size = c.pick(p.sizes)
      const d = [2, 3, 4].find((x) => size.value % x === 0) ?? 1
      const what = c.chance(70) ? { multiple: d } : { equal: size.value }
      attempt(`require ${size.name} ${JSON.stringify(what)}`, (k) => k.require(size.name, what))
      return
    }
    case 12:
    case 13:
    case 14: {
      const layout = {
        ...(c.chance(20) ? { transposed: true } : {}),
        ...(c.chance(20) ? { stride: c.pick([8, 9, 12]) } : {}),
        ...(c.chance(20) ? { by: c.pick([2, 4]) } : {}),
        ...(c.chance(40) ? { padded: 0 } : {}),
      }
      const scope = c.pick(['shared', 'register'] as const)
      const done = attempt(`cache_read ${buffer} at ${loop} in ${scope} ${JSON.stringify(layout)}`, (k) =>
        k.cacheRead(buffer, loop, scope, undefined, layout),
      )
      if (done && scope === 'shared' && c.chance(60))
        attempt(`pipeline ${loop}`, (k) => k.pipeline(loop, c.pick([2, 3])))
      return
    }
    case 15:
      attempt(`pipeline ${loop}`, (k) => k.pipeline(loop, c.pick([2, 3])))
      return
    case 16:
    case 17: {
      const scope = c.pick(['register', 'shared'] as const)
      attempt(`cache_write ${output} at ${loop} in ${scope}`, (k) => k.cacheWrite(output, loop, scope))
      return
    }
    case 18: {
      const nest = c.pick(nests)
      attempt(`compute_at ${nest} at ${loop}`, (k) => k.computeAt(nest, loop))
      return
    }
    case 19:
      attempt(`fission ${loop}`, (k) => k.fission(loop, c.chance(50) ? c.pick(nests) : 1))
      return
    case 20:
      attempt(`rfactor ${loop}`, (k) => k.rfactor(loop))
      return
    case 21:
      attempt(`atomic ${output}`, (k) => k.atomic(output))
      return
    case 22:
      attempt(`combine ${output}`, (k) => k.combine(output))
      return
    case 23:
    case 24: {
      const some = c.pick([undefined, 2, 4])
      const within = c.chance(20) ? { within: c.pick(loops) } : {}
      const into = c.chance(20) ? { into: 'K' } : {}
      attempt(`accumulate ${output} over ${loop}`, (k) =>
        k.accumulate(output, loop, some, { ...within, ...into }),
      )
      return
    }
    case 25:
      if (nests.length > 1) {
        const some = c.shuffle(nests).slice(0, 2)
        attempt(`merge ${some}`, (k) => k.merge(...some))
      } else attempt(`merge_parts ${buffer}`, (k) => k.mergeParts(buffer))
      return
    case 26:
      attempt(`reverse ${loop}`, (k) => k.reverse(loop))
      return
    default:
      attempt(`serpentine ${loop} by ${by}`, (k) => k.serpentine(loop, by))
  }
}
