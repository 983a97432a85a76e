/**
 * Invariant reached: what declared instructions do is calls of them, and buffers in declared register memories are
 * arrays of what one thread holds: the tiles of a buffer, then the slots of a tile.
 *
 * Loops over the elements of such tiles become loops over the slots of each thread, whose coordinates the memory's
 * map gives: initialisation, conversion and write-back need no instruction.
 */
import { fail, invariant } from '../ast/diagnostic.ts'
import { builtin, type Expr, int, type Load, load, mentions, substitute, variable } from '../ir/expr.ts'
import { type Instr, LANE, type Memory, type Placeholder, SLOT } from '../ir/instr.ts'
import { matchInstr } from '../ir/instr-match.ts'
import { iteratorsOf } from '../ir/instr-operands.ts'
import { isTogether, type Lanes, lanesIn } from '../ir/lanes.ts'
import { linear } from '../ir/linear.ts'
import type { Buffer, CallPiece, For, InstrCall, Kernel2, Stmt } from '../ir/loops.ts'
import { tiledShape } from '../ir/tiles.ts'
import {
  accessesOf,
  type Body,
  bodiesOf,
  mapSame,
  rewriteStmts,
  stmt,
  substituteStmts,
  walkStmts,
  withBodies,
} from '../ir/tree.ts'
import type { Names } from './names.ts'
import { combines, coordinates, physical, refuse, sameElements, unrolled } from './thread-tiles.ts'

export function lowerInstructions(body: Body, kernel: Kernel2, names: Names): Body {
  let declared = false
  walkStmts(body, (s) => {
    if (s.kind === 'for' && s.mode.kind === 'instr') declared = true
    if (s.kind === 'alloc' && s.buffer.memory?.scope === 'register') declared = true
  })
  return declared ? new Lowering(body, kernel, names).run(body) : body
}

class Lowering {
  readonly #lanes: Lanes
  readonly #buffers: Map<string, Buffer>
  readonly #kernel: Kernel2
  readonly #names: Names

  constructor(body: Body, kernel: Kernel2, names: Names) {
    this.#lanes = lanesIn(body)
    this.#kernel = kernel
    this.#names = names
    this.#buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
    walkStmts(body, (s) => {
      if (s.kind === 'alloc') this.#buffers.set(s.buffer.name, s.buffer)
    })
  }

  run(body: Body): Body {
    return unrolled(this.#list(body, []), this.#lanes)
  }

  #list(body: Body, conditions: readonly Expr[]): Body {
    return body.flatMap((s) => this.#statement(s, conditions))
  }

  #statement(s: Stmt, conditions: readonly Expr[]): Body {
    switch (s.kind) {
      case 'alloc': {
        const { memory } = s.buffer
        if (memory?.scope !== 'register') return [s]
        return [stmt({ ...s, buffer: Object.freeze({ ...s.buffer, shape: tiledShape(s.buffer, memory) }) })]
      }
      case 'for':
        if (s.mode.kind === 'instr') return [this.#call(s, s.mode.instr, conditions)]
        if (isTogether(s, this.#lanes) && this.#isOverTiles(s)) return [this.#nest(s)]
        return [stmt({ ...s, body: this.#list(s.body, [...conditions, s.extent]) })]
      case 'if': {
        const inside = [...conditions, s.cond]
        return [stmt({ ...s, then: this.#list(s.then, inside), else: this.#list(s.else, inside) })]
      }
      default:
        if (s.kind !== 'instr' && isTogether(s, this.#lanes))
          refuse(s, 'one element of a tile that threads hold together is used alone')
        return [withBodies(s, bodiesOf(s))]
    }
  }

  // --- instructions ---

  #call(loop: For, instr: Instr, conditions: readonly Expr[]): InstrCall {
    const divergent = conditions.find((e) => mentions(e, 'thread.x'))
    if (instr.threads > 1 && divergent)
      fail({
        code: 'schedule/divergent-instruction',
        message: `${instr.name} is done by ${instr.threads} threads together, and they disagree on whether it is done`,
        ...(loop.span ? { span: loop.span } : {}),
        expected: 'conditions that are the same for all threads of thread.x',
      })
    const match = matchInstr(instr, loop, {
      buffer: (name) => this.#buffers.get(name),
      facts: this.#kernel.facts,
    })
    if (match.kind === 'mismatch')
      return fail({
        code: `schedule/${match.code}`,
        message: `${instr.name}: ${match.message}`,
        ...(loop.span ? { span: loop.span } : {}),
      })
    const piece = (p: string | Placeholder): CallPiece => {
      if (typeof p === 'string') return p
      if (p.kind === 'lane') return { kind: 'value', value: builtin('thread.x') }
      invariant(p.kind === 'operand', 'only what waits speaks of groups')
      const o = instr.operands.find((x) => x.name === p.operand)
      const l = match.operands.get(p.operand)
      invariant(o && l, `no operand ${p.operand}`)
      const own = iteratorsOf(o, instr).map(
        (name) => match.loops[instr.iters.findIndex((i) => i.name === name)]!,
      )
      const at = (values: readonly Expr[]): readonly Expr[] =>
        l.index.map((e) => substitute(e, new Map(own.map((x, k) => [x.var, values[k]!]))))
      const ref = (index: readonly Expr[]): CallPiece => ({
        kind: p.what,
        buffer: l.buffer,
        index,
        mode: o.mode,
      })
      if (p.what === 'name') return ref([])
      if (p.what === 'slot' || p.what === 'word') {
        const k = p.args[0]
        invariant(k?.kind === 'const', 'a register has a constant number')
        const slot = p.what === 'word' ? 2 * k.value : k.value
        const zeros = own.map(() => int(0))
        return ref(o.memory ? physical(at(zeros), o.memory, int(slot)) : at(coordinates(slot, o.shape)))
      }
      return ref(at(p.args.map((e) => substitute(e, new Map([[LANE, builtin('thread.x')]])))))
    }
    return stmt<InstrCall>({
      kind: 'instr',
      instr: instr.name,
      threads: instr.threads,
      texts: instr.texts.map((t) => ({ target: t.target, from: t.from, pieces: t.pieces.map(piece) })),
      span: instr.span,
    })
  }

  // --- loops over elements ---

  /** The loop variable that walks along each dimension of the tile. */
  #along(index: readonly Expr[], memory: Memory): readonly (string | undefined)[] {
    const at = index.length - memory.shape.length
    return memory.shape.map((t, d) => {
      const inside = [...linear(index[at + d]!).terms.values()].filter((x) => x.coefficient % t !== 0)
      const [only] = inside
      return inside.length === 1 && only?.coefficient === 1 && only.term.kind === 'var'
        ? only.term.name
        : undefined
    })
  }

  #tileAccesses(body: Body): readonly { readonly index: readonly Expr[]; readonly memory: Memory }[] {
    return accessesOf(body).flatMap((a) => {
      const memory = this.#lanes.buffers.has(a.buffer) ? this.#buffers.get(a.buffer)?.memory : undefined
      return memory && !a.path.some((l) => l.mode.kind === 'instr') ? [{ index: a.index, memory }] : []
    })
  }

  #isOverTiles(s: For): boolean {
    return this.#tileAccesses([s]).some((a) => this.#along(a.index, a.memory).includes(s.var))
  }

  #nest(root: For): Stmt {
    const accesses = this.#tileAccesses([root])
    const memory = accesses[0]!.memory
    const dims = new Map<string, number>()
    for (const a of accesses) {
      const vars = this.#along(a.index, a.memory)
      if (!sameElements(a.memory, memory))
        refuse(root, `elements in ${memory.name} and in ${a.memory.name} are held by different threads`)
      vars.forEach((v, d) => {
        if (v === undefined || (dims.has(v) && dims.get(v) !== d))
          refuse(root, `elements of a tile of ${memory.name} are not gone through one by one`)
        dims.set(v, d)
      })
    }
    if (dims.size !== memory.shape.length)
      refuse(root, `elements of one tile of ${memory.name} meet that are held by different threads`)
    const slot = this.#names.fresh('slot')
    const here = new Map([
      [LANE, builtin('thread.x') as Expr],
      [SLOT, variable(slot)],
    ])
    const elements = memory.element.map((e) => substitute(e, here))
    const tiles = new Map<string, string>()
    const values = new Map<string, Expr>()
    const starts = new Map<string, Expr>()
    walkStmts([root], (s) => {
      if (s.kind === 'for' && s.mode.kind === 'instr') refuse(s, 'an instruction stands among elements')
      const d = s.kind === 'for' ? dims.get(s.var) : undefined
      if (s.kind !== 'for' || d === undefined) return
      const t = memory.shape[d]!
      if (s.reduce && combines(s))
        refuse(s, `${s.name} combines elements of ${memory.name} that different threads hold`)
      if (s.extent.kind !== 'const' || s.extent.value % t !== 0)
        refuse(s, `${s.name} does not go through whole tiles of ${memory.name}`)
      if (s.extent.value === t) {
        values.set(s.var, elements[d]!)
        starts.set(s.var, int(0))
      } else {
        const tile = this.#names.fresh(s.var)
        tiles.set(s.var, tile)
        const start: Expr = { kind: 'binary', op: 'mul', a: variable(tile), b: int(t), dtype: 'i32' }
        starts.set(s.var, start)
        values.set(s.var, { kind: 'binary', op: 'add', a: start, b: elements[d]!, dtype: 'i32' })
      }
    })
    const place = (buffer: string, index: readonly Expr[]): readonly Expr[] | undefined => {
      const m = this.#lanes.buffers.has(buffer) ? this.#buffers.get(buffer)?.memory : undefined
      return (
        m &&
        physical(
          index.map((e) => substitute(e, starts)),
          m,
          variable(slot),
        )
      )
    }
    const moved = rewriteStmts([root], {
      expr: (e) => {
        const index = e.kind === 'load' ? place(e.buffer, e.index) : undefined
        return e.kind === 'load' && index ? load(e.buffer, index, e.dtype, e.span) : undefined
      },
      stmt: (s) => {
        if (s.kind === 'store') {
          const index = place(s.buffer, s.index)
          return index && stmt({ ...s, index })
        }
        if (s.kind !== 'reduce') return undefined
        const targets = mapSame(s.targets, (t): Load => {
          const index = place(t.buffer, t.index)
          return index ? load(t.buffer, index, t.dtype, t.span) : t
        })
        return targets === s.targets ? undefined : stmt({ ...s, targets })
      },
    })
    const over = rewriteStmts(substituteStmts(moved, values), {
      stmt: (s) => {
        if (s.kind !== 'for' || !dims.has(s.var)) return undefined
        const tile = tiles.get(s.var)
        if (tile === undefined) return s.body
        const count = (s.extent.kind === 'const' ? s.extent.value : 1) / memory.shape[dims.get(s.var)!]!
        return stmt<For>({ ...s, var: tile, extent: int(count), mode: { kind: 'unroll', factor: null } })
      },
    })
    return stmt<For>({
      kind: 'for',
      var: slot,
      name: 'slot',
      nest: root.nest,
      extent: int(memory.size),
      reduce: false,
      guards: [],
      mode: { kind: 'unroll', factor: null },
      body: over,
      span: root.span,
    })
  }
}
