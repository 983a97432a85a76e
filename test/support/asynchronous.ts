/**
 * A device whose instructions take time: copies that count their bytes on barriers, copies in groups, and computing in
 * order, as chance has it. It refuses what a device would take silently: barriers used before they are made, more or
 * fewer bytes than expected, waits for a phase that is over since long, tiles touched or filled again too early. The
 * texts of its instructions are the names of what they do (`DECLARED`).
 */
import { expect } from 'vitest'
import { InternalError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Memory } from '../../src/interpret/races.ts'
import { compileExpr, type Frame, type Instructions } from '../../src/interpret/thread-code.ts'
import type { Expr } from '../../src/ir/expressions/expr.ts'
import type { CallPiece, InstrCall } from '../../src/ir/instructions/instr-call.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'

/** `bulk`: boxes; `later`: rows, in groups; `multiply`: C += A B on tiles, ordered, in groups; `leave`: boxes to global memory. */
export const DECLARED = `
memory tile: f32[2, 4] in shared aligned 128 {
  address (i, j) -> i * 4 + j
}
memory acc: f32[2, 4] in register of 4 threads {
  element (lane, slot) -> (lane / 2, lane % 2 * 2 + slot)
}
instr bulk(D: f32[2, 4] in tile, S: f32[2, 4] in global mapped) asynchronous counted {
  iterate copy [i, j] as SS { D[i, j] = S[i, j] }
  cuda \`bulk($D.at(0, 0), $S.map, $S.row, $S.column, $barrier);\`
  multicast cuda \`multicast($D.at(0, 0), $S.map, $S.row, $S.column, $barrier, $blocks);\`
  release cuda \`release($barrier, $block);\`
  prepare cuda \`prepare($barrier, $arrivals);\`
  expect cuda \`expect($barrier, $bytes);\`
  wait cuda \`arrived($barrier, $phase);\`
}
instr later(D: f32[4] in shared aligned 16, S: f32[4] in global aligned 16) asynchronous {
  iterate copy [j] as S { D[j] = S[j] }
  cuda \`later($D.at(0), $S.at(0));\`
  commit cuda \`copied();\`
  wait cuda \`wait($pending);\`
}
instr multiply(C: f32[2, 4] in acc, A: f32[2, 4] in tile, B: f32[4, 4] in tile) by 4 threads asynchronous ordered {
  iterate multiply [i, j, k] as SSR { C[i, j] += A[i, k] * B[k, j] }
  cuda \`multiply($C[0], $C[1], $A.at(0, 0), $B.at(0, 0), $B.at(2, 0), $lane);\`
  commit cuda \`started();\`
  wait cuda \`done($pending);\`
}
instr leave(D: f32[2, 4] in global mapped, S: f32[2, 4] in tile) asynchronous {
  iterate copy [i, j] as SS { D[i, j] = S[i, j] }
  cuda \`leave($S.at(0, 0), $D.map, $D.row, $D.column);\`
  commit cuda \`left();\`
  wait cuda \`stored($pending);\`
  wait_read cuda \`taken($pending);\`
}`

const [ROWS, COLUMNS] = [2, 4]
const TILE = ROWS * COLUMNS
const BYTES = 4

/** A barrier in shared memory. */
interface Barrier {
  /** When it was made: others may use it once threads met after that. */
  readonly made: { readonly thread: number; readonly epoch: number }
  /** That end a phase; those of this one. */
  readonly arrivals: number
  here: number
  /** Phases that are over. */
  phases: number
  expected: boolean
  bytes: number
  /** By thread: phases waited for. */
  readonly waits: Map<number, number>
}

/** What a thread started: to be finished no later than when it waits. */
type Work = () => void

interface Groups {
  open: Work[]
  readonly closed: Work[][]
}

/** Polls of barriers without anything happening, after which nothing will. */
const DEADLOCK = 100_000

export class Device implements Instructions {
  readonly #random: Random
  readonly #barriers = new Map<Memory, Map<number, Barrier>>()
  /** Copies under way that count their bytes. */
  readonly #flying = new Set<Work>()
  readonly #copies = new Map<string, Groups>()
  readonly #products = new Map<string, Groups>()
  readonly #stores = new Map<string, Groups>()
  readonly #values = new WeakMap<Expr, (f: Frame) => number>()
  /** Sums that are not yet in their registers. */
  readonly #sums = new WeakMap<Memory, number>()
  #polls = 0
  /** How many copies were asked for. */
  copies = 0

  constructor(seed: number) {
    this.#random = new Random(seed)
  }

  begin(call: InstrCall, f: Frame): () => boolean {
    const { name, args, number } = this.#read(call, f)
    const what = `${name} by thread ${f.state.thread} of block ${f.state.block}`
    if (name === 'arrived') return this.#arrived(args, f, what)
    let done = false
    return () => {
      this.#tick()
      // Others may come first, but where this was asked for last.
      if (!done && this.#random.next() < 0.3) return false
      if (!done) this.#do(name, args, number, f, what)
      done = true
      return true
    }
  }

  /** Everything ended: no byte is missing, nobody waits. */
  end(): void {
    expect(this.#flying.size).toBe(0)
    for (const barriers of this.#barriers.values())
      for (const [k, b] of barriers)
        if (b.expected || b.bytes !== 0)
          throw new InternalError(`barrier ${k} is left in a phase, ${b.bytes} bytes from its end`)
    for (const groups of [...this.#copies.values(), ...this.#products.values(), ...this.#stores.values()])
      expect([...groups.closed.flat(), ...groups.open].length, 'work that nobody waited for').toBe(0)
  }

  #do(name: string, args: readonly Argument[], number: number, f: Frame, what: string): void {
    const { thread } = f.state
    const [first] = args
    switch (name) {
      case 'prepare': {
        const [memory, k] = first!.place!
        const all = this.#barriers.get(memory) ?? new Map<number, Barrier>()
        this.#barriers.set(memory, all)
        if (all.has(k)) throw new InternalError(`${what}: made twice`)
        const made = { thread, epoch: f.state.epoch }
        all.set(k, {
          made,
          arrivals: number,
          here: 0,
          phases: 0,
          expected: false,
          bytes: 0,
          waits: new Map(),
        })
        return
      }
      case 'expect': {
        const b = this.#barrier(first!, f, what)
        if (b.expected) throw new InternalError(`${what}: the phase before is not over`)
        b.expected = true
        this.#count(b, number)
        return
      }
      case 'bulk':
        this.#bulk(args, [f], what)
        return
      case 'multicast':
        expect(number).toBe(2 ** f.cluster.length - 1)
        this.#bulk(args, f.cluster, what)
        return
      case 'release':
        this.#release(this.#barrier(inBlock(first!, f.cluster[args[1]!.value!]!), f, what), what)
        return
      case 'later':
        this.#later(args, f)
        return
      case 'multiply':
        this.#multiply(args, f)
        return
      case 'leave':
        this.#leave(args, f)
        return
      case 'left':
        commit(groupsOf(this.#stores, f))
        return
      // Nobody sees when the last of what was taken is there.
      case 'stored':
      case 'taken':
        settle(groupsOf(this.#stores, f), number)
        return
      case 'copied':
        commit(groupsOf(this.#copies, f))
        return
      case 'started':
        commit(groupsOf(this.#products, f))
        return
      case 'wait':
        settle(groupsOf(this.#copies, f), number)
        return
      case 'done':
        settle(groupsOf(this.#products, f), number)
        return
      default:
        throw new InternalError(`${what}: unknown`)
    }
  }

  #arrived([at, phase]: readonly Argument[], f: Frame, what: string): () => boolean {
    const parity = phase!.value!
    return () => {
      this.#tick()
      const b = this.#barrier(at!, f, what)
      const mine = b.waits.get(f.state.thread) ?? 0
      // Of a phase that others end by arriving, a thread may ask before each of its copies.
      if (b.arrivals > 1 && parity !== mine % 2 && b.phases === mine) return true
      if (parity !== mine % 2) throw new InternalError(`${what}: parity ${parity} of phase ${mine}`)
      if (b.phases > mine + 1) throw new InternalError(`${what}: phase ${mine} was over long ago`)
      if (b.phases === mine || this.#random.next() < 0.2) return false
      b.waits.set(f.state.thread, mine + 1)
      return true
    }
  }

  #release(b: Barrier, what: string): void {
    if (++b.here > b.arrivals) throw new InternalError(`${what}: more arrive than were expected`)
    if (b.here < b.arrivals) return
    b.here = 0
    b.phases++
    this.#polls = 0
  }

  /** Into the memory of each of these blocks, on their barriers; they arrive one by one. */
  #bulk(args: readonly Argument[], blocks: readonly Frame[], what: string): void {
    this.copies++
    for (const f of blocks) this.#box(args, f, what)
  }

  #box([at, map, row, column, signal]: readonly Argument[], f: Frame, what: string): void {
    const b = this.#barrier(inBlock(signal!, f), f, what)
    const [memory, base] = inBlock(at!, f).place!
    const [from, rows, columns] = map!.matrix!
    for (let k = 0; k < TILE; k++) memory.claim(base + k, f.state)
    const work = (): void => {
      this.#flying.delete(work)
      for (let k = 0; k < TILE; k++) {
        const [i, j] = [row!.value! + Math.floor(k / COLUMNS), column!.value! + (k % COLUMNS)]
        const inside = i >= 0 && i < rows && j >= 0 && j < columns
        memory.completeWrite(base + k, inside ? from.read(i * columns + j, f.state, false) : 0)
      }
      this.#count(b, -TILE * BYTES)
    }
    this.#flying.add(work)
  }

  #later([to, from]: readonly Argument[], f: Frame): void {
    const [memory, base] = to!.place!
    const [source, start] = from!.place!
    for (let k = 0; k < COLUMNS; k++) memory.claim(base + k, f.state)
    groupsOf(this.#copies, f).open.push(() => {
      for (let k = 0; k < COLUMNS; k++) {
        const value = source.read(start + k, f.state, false)
        memory.completeWrite(base + k, value)
        // Others know of it when threads met.
        memory.write(base + k, value, f.state, false)
      }
    })
  }

  /** The tile is read as late as may be. */
  #leave([at, map, row, column]: readonly Argument[], f: Frame): void {
    this.copies++
    const [memory, base] = at!.place!
    const [to, rows, columns] = map!.matrix!
    groupsOf(this.#stores, f).open.push(() => {
      for (let k = 0; k < TILE; k++) {
        const [i, j] = [row!.value! + Math.floor(k / COLUMNS), column!.value! + (k % COLUMNS)]
        const value = memory.read(base + k, f.state, false)
        if (i < rows && j < columns) to.write(i * columns + j, value, f.state, false)
      }
    })
  }

  /** The tiles are read when it begins, and until it ends. */
  #multiply([c0, c1, a, b0, b1, lane]: readonly Argument[], f: Frame): void {
    const read = (x: Argument, k: number): number => x.place![0].read(x.place![1] + k, f.state, false)
    const sum = (slot: number): number => {
      const i = Math.floor(lane!.value! / 2)
      const j = (lane!.value! % 2) * 2 + slot
      let s = 0
      for (let k = 0; k < 4; k++)
        s += read(a!, i * COLUMNS + k) * read(k < ROWS ? b0! : b1!, (k % ROWS) * COLUMNS + j)
      return s
    }
    const work = [c0!, c1!].map((c, slot) => {
      const [register, k] = c.place!
      const added = sum(slot)
      const total = (this.#sums.get(register) ?? register.read(k, f.state, false)) + added
      this.#sums.set(register, total)
      register.write(k, Number.NaN, f.state, false)
      return () => {
        expect(sum(slot), 'a tile changed while it was used').toBe(added)
        if (this.#sums.get(register) !== total) return
        this.#sums.delete(register)
        register.write(k, total, f.state, false)
      }
    })
    groupsOf(this.#products, f).open.push(...work)
  }

  #barrier({ place }: Argument, { state: who }: Frame, what: string): Barrier {
    const [memory, k] = place!
    const b = this.#barriers.get(memory)?.get(k)
    if (!b || (b.made.thread !== who.thread && b.made.epoch === who.epoch))
      throw new InternalError(`${what}: the barrier is not made yet`)
    return b
  }

  #count(b: Barrier, bytes: number): void {
    this.#polls = 0
    b.bytes += bytes
    if (!b.expected || b.bytes !== 0) return
    b.expected = false
    b.phases++
  }

  /** Time goes by: a copy may end. */
  #tick(): void {
    if (++this.#polls > DEADLOCK) throw new InternalError('all threads wait for a phase that does not end')
    if (this.#random.next() < 0.7) return
    const works = [...this.#flying]
    if (works.length > 0) works[this.#random.below(works.length)]!()
  }

  /** The name of a call, its arguments, and the number in its text. */
  #read(call: InstrCall, f: Frame) {
    const { pieces } = call.texts[0]!
    const text = pieces.map((p) => (typeof p === 'string' ? p : '')).join('')
    const [name] = /^\w+/.exec(text)!
    return { name, args: this.#arguments(pieces, f), number: Number(/\d+/.exec(text)?.[0]) }
  }

  #arguments(pieces: readonly CallPiece[], f: Frame): readonly Argument[] {
    return pieces.flatMap((p): readonly Argument[] => {
      if (typeof p === 'string') return []
      if (p.kind === 'value') return [{ value: this.#value(p.value, f) }]
      const memory = f.memory.get(p.buffer)
      if (!memory) throw new InternalError(`no buffer ${p.buffer} here`)
      if (p.kind === 'map') {
        const { rows, columns, box } = p.matrix
        expect(box).toEqual([ROWS, COLUMNS])
        return [{ matrix: [memory, evaluate(rows, f.vars), evaluate(columns, f.vars)] }]
      }
      return [{ place: [memory, this.#value(p.index[0]!, f)], buffer: p.buffer }]
    })
  }

  #value(e: Expr, f: Frame): number {
    let made = this.#values.get(e)
    if (!made) {
      made = compileExpr(e)
      this.#values.set(e, made)
    }
    return made(f)
  }
}

interface Argument {
  readonly value?: number
  readonly buffer?: string | undefined
  readonly place?: readonly [Memory, number]
  readonly matrix?: readonly [Memory, number, number]
}

/** The same place in the shared memory of a block. */
function inBlock({ place, buffer }: Argument, f: Frame): Argument {
  const memory = f.shared.get(buffer!)
  if (!memory) throw new InternalError(`block ${f.state.block} has no ${buffer} yet`)
  return { place: [memory, place![1]], buffer }
}

function groupsOf(all: Map<string, Groups>, { state: who }: Frame): Groups {
  const name = `${who.block} ${who.thread}`
  const known = all.get(name)
  if (known) return known
  const made: Groups = { open: [], closed: [] }
  all.set(name, made)
  return made
}

function commit(g: Groups): void {
  g.closed.push(g.open)
  g.open = []
}

function settle(g: Groups, pending: number): void {
  for (const work of g.closed.splice(0, Math.max(0, g.closed.length - pending))) for (const w of work) w()
}
