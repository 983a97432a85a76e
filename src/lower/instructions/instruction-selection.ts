/**
 * Instruction selection for declared (tensor core) instructions. Invariant reached: tensorized loops are instruction calls. Buffers in
 * declared register memories are arrays of the elements that one thread holds, indexed by tile and slot.
 * Loops over the elements of such tiles become loops over the slots of each thread (`tile-element-loops.ts`). So initialisation,
 * conversion and write-back need no instruction.
 */

import { isWarpCollective, lanesIn } from '../../analysis/instructions/lane-groups.ts'
import { matchInstr } from '../../analysis/instructions/match.ts'
import { alongDimensions } from '../../analysis/instructions/operand-digits.ts'
import { Facts } from '../../analysis/integers/facts.ts'
import { fail, failAt, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { add, all, builtin, type Expr, eq, int, mod, mul, select } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import type { Instr, Operand, Placeholder, Signals } from '../../ir/instructions/instr.ts'
import { barrierAddress, LANE, tileSteps, tilesOf } from '../../ir/instructions/instr.ts'
import { type CallPiece, type InstrCall, instrCall, type Matrix } from '../../ir/instructions/instr-call.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { buffersByName, loopsOf } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, someStmt, stmt, walkStmts } from '../../ir/statements/tree.ts'
import { coordinatesAt } from '../../ir/values/arrays.ts'
import { address, tiledShape } from '../memory/buffer-flattening.ts'
import { physical, unrolled } from './register-fragments.ts'
import { elementLoops } from './tile-element-loops.ts'

export function selectInstructions(body: Body, kernel: Kernel2, names: Names): Body {
  const isDeclared = (s: Stmt): boolean =>
    (s.kind === 'for' && s.mode.kind === 'instr') ||
    (s.kind === 'instr' && s.once === true) ||
    (s.kind === 'alloc' && s.buffer.memory?.scope === 'register')
  return someStmt(body, isDeclared) ? selection(body, kernel, names) : body
}

/** Condition of the first thread of a block. Absent axes have index 0. */
export const FIRST_THREAD = eq(
  add(builtin('thread.x'), add(builtin('thread.y'), builtin('thread.z'))),
  int(0),
)

/** Restricts a multicast copy to the block of the cluster whose turn it is. */
const inTurn = (signals: Signals | undefined, call: InstrCall): Stmt => {
  const multicast = signals?.multicast
  if (!multicast) return call
  return when(eq(mod(builtin('block.x'), int(multicast.cluster)), multicast.turn), [call])
}

function selection(body: Body, kernel: Kernel2, names: Names) {
  const lanes = lanesIn(body)
  const facts = new Facts({ sizes: kernel.facts })
  const buffers = buffersByName(kernel.buffers, body)
  const loops = new Map(loopsOf(body).map((l) => [l.var, l]))
  const elements = elementLoops(lanes, buffers, loops, names)
  const list = (body: Body, conditions: readonly Expr[]): Body =>
    body.flatMap((s) => statement(s, conditions))
  const statement = (s: Stmt, conditions: readonly Expr[]): Body => {
    switch (s.kind) {
      case 'alloc': {
        const { memory } = s.buffer
        if (memory?.scope !== 'register') return [s]
        return [stmt({ ...s, buffer: Object.freeze({ ...s.buffer, shape: tiledShape(s.buffer, memory) }) })]
      }
      case 'for':
        if (s.mode.kind === 'instr') return [inTurn(s.mode.signals, call(s, s.mode.instr, conditions))]
        if (isOfTiles(s) && elements.has(s)) return [elements.lower(s)]
        return [stmt({ ...s, body: list(s.body, [...conditions, s.extent]) })]
      case 'if': {
        const inside = [...conditions, s.cond]
        return [stmt({ ...s, then: list(s.then, inside), else: list(s.else, inside) })]
      }
      case 'instr':
        return [s.once ? when(FIRST_THREAD, [stmt({ ...s, once: false })]) : s]
      default:
        if (isOfTiles(s) && elements.has(s)) return [elements.lower(s)]
        if (isOfTiles(s)) elements.rejectPartialAccess(s)
        return [s]
    }
  }
  /** Returns true for a statement that lanes execute together, or that accesses a fragment held by one thread. */
  const isOfTiles = (s: Stmt): boolean =>
    isWarpCollective(s, lanes) ||
    (lanes.count === 1 && accessesOf([s]).some((a) => lanes.buffers.has(a.buffer)))
  const call = (loop: For, instr: Instr, conditions: readonly Expr[]): InstrCall => {
    const together = (all: readonly Expr[]): void => {
      if (instr.threads > 1 && all.some((e) => mentions(e, 'thread.x')))
        failAt('schedule/divergent-instruction', loop.span, {
          message: `${instr.name} is done by ${instr.threads} threads together under a condition that differs between threads`,
          expected: 'conditions that are the same for every thread of thread.x',
        })
    }
    together(conditions)
    const match = matchInstr(instr, loop, {
      buffer: (name) => buffers.get(name),
      facts: facts,
    })
    if (match.kind === 'mismatch')
      return fail({
        ...match.refusal,
        message: `${instr.name}: ${match.refusal.message}`,
        ...(loop.span && { span: loop.span }),
      })
    const there = all(match.where)
    const filled = match.where.length > 0 ? instr.filled : undefined
    if (filled) together(match.where)
    const signals = loop.mode.kind === 'instr' ? loop.mode.signals : undefined
    const texts = (signals?.multicast && instr.multicast?.texts) ?? filled ?? instr.texts
    const piece = (p: string | Placeholder): CallPiece => {
      if (typeof p === 'string') return p
      if (p.kind === 'lane') return { kind: 'value', value: builtin('thread.x') }
      if (p.kind === 'barrier') {
        invariant(signals, `${instr.name} has no barrier`)
        return barrierAddress(signals)
      }
      if (p.kind === 'there') return { kind: 'value', value: select(there, int(1), int(0)) }
      if (p.kind === 'blocks') {
        invariant(signals?.multicast, `${instr.name} is alone`)
        return String(2 ** signals.multicast.cluster - 1)
      }
      invariant(p.kind === 'operand', 'only what waits speaks of groups')
      const o = instr.operands.find((x) => x.name === p.operand)
      const element = match.operands.get(p.operand)
      const along = o && element && alongDimensions(o, element, instr, match.loops, match.operands)
      invariant(o && along, `no operand ${p.operand}`)
      const { load: l, own } = along
      // Loops that do not index the operand have one iteration per call, so their variables are 0.
      const others = match.loops.map((x) => [x.var, int(0)] as const)
      const at = (values: readonly Expr[]): readonly Expr[] =>
        l.index.map((e) => {
          const x = substitute(e, new Map([...others, ...own.map((l, k) => [l.var, values[k]!] as const)]))
          // Elements that do not exist are replaced by address 0, and the instruction fills them.
          return filled && o.mode === 'read' && x.kind !== 'const' ? select(there, x, int(0)) : x
        })
      const { what } = p
      if (what === 'map' || what === 'row' || what === 'column') {
        const b = buffers.get(l.buffer)
        invariant(b && o.mapped, `${l.buffer} is no matrix`)
        const [row, column] = matrixIndex(b, at(own.map(() => int(0))))
        if (what !== 'map') return { kind: 'value', value: what === 'row' ? row : column }
        return { kind: 'map', buffer: l.buffer, index: [], mode: o.mode, matrix: matrixOf(b, o) }
      }
      const ref = (index: readonly Expr[]): CallPiece => ({
        kind: what,
        buffer: l.buffer,
        index,
        mode: o.mode,
      })
      if (what === 'name') return ref([])
      if (what === 'slot' || what === 'word') {
        const k = p.args[0]
        invariant(k?.kind === 'const', 'a register has a constant number')
        const slot = what === 'word' ? 2 * k.value : k.value
        const { memory } = o
        if (!memory) return ref(at(coordinatesAt(slot, o.shape).map(int)))
        const tile = coordinatesAt(Math.floor(slot / memory.size), tilesOf(o, memory))
        const steps = tileSteps(o, memory)
        const first = at(tile.map((t, d) => int(t * steps[d]!)))
        return ref(physical(first, memory, int(slot % memory.size)))
      }
      return ref(at(p.args.map((e) => substitute(e, new Map([[LANE, builtin('thread.x')]])))))
    }
    return instrCall({
      instr: instr.name,
      threads: instr.threads,
      ...(instr.asynchronous && { asynchronous: true }),
      ...(instr.precision !== undefined && { precision: instr.precision }),
      texts: texts.map((t) => ({ ...t, pieces: t.pieces.map(piece) })),
      span: instr.span,
    })
  }
  checkFences(body, buffers, facts)
  return unrolled(list(body, []), lanes)
}

/**
 * The matrix that a tensor map (TMA descriptor) describes, whose boxes instructions copy: the last dimension of the buffer is the
 * columns, all other dimensions together are the rows.
 */
function matrixOf(b: Buffer, o: Operand): Matrix {
  const [rows, columns] = o.shape
  invariant(o.mapped && rows !== undefined && columns !== undefined, `${o.name} is no box`)
  return {
    rows: b.shape.slice(0, -1).reduce(mul, int(1)),
    columns: b.shape.at(-1)!,
    box: [rows, columns],
    swizzle: o.mapped.swizzle,
  }
}

const matrixIndex = (b: Buffer, index: readonly Expr[]): readonly [Expr, Expr] => [
  address(b.shape.slice(0, -1), index.slice(0, -1)),
  index.at(-1)!,
]

// Proxy fences (`fence.proxy.async`): if an instruction reads shared memory through the async proxy, every instruction that fills this
// memory must be declared `fenced`, because the proxy may not see ordinary stores or asynchronous copies of the threads (PTX ISA, "Async
// proxy").

interface Reader {
  readonly loop: For
  readonly instr: Instr
  readonly operand: string
}

/** Throws SptError `schedule/unfenced` if an instruction reads a buffer through the async proxy that is filled without a fence. */
export function checkFences(body: Body, buffers: ReadonlyMap<string, Buffer>, facts: Facts): void {
  const readers = new Map<string, Reader>()
  const writers = new Map<string, string>()
  const ordinary = (s: Stmt, by: string): void => {
    for (const a of accessesOf([s]))
      if (a.mode === 'write' && !writers.has(a.buffer)) writers.set(a.buffer, by)
  }
  walkStmts(body, (s, path) => {
    if (s.kind !== 'for' || s.mode.kind !== 'instr') {
      if (s.kind === 'store' || s.kind === 'reduce') ordinary(s, path.at(-1)?.nest ?? 'a store')
      return true
    }
    const { instr } = s.mode
    const match = matchInstr(instr, s, { buffer: (name) => buffers.get(name), facts })
    if (match.kind === 'mismatch') return false
    for (const o of instr.operands) {
      const at = match.operands.get(o.name)
      if (!at) continue
      if (o.mode !== 'write' && o.fenced) readers.set(at.buffer, { loop: s, instr, operand: o.name })
      if (o.mode !== 'read' && !o.fenced) ordinary(s, instr.name)
    }
    return false
  })
  for (const [buffer, { loop, instr, operand }] of readers) {
    const by = writers.get(buffer)
    if (by === undefined) continue
    failAt('schedule/unfenced', loop.span, {
      message: `${instr.name} reads operand ${operand} through the async proxy, and ${by} fills ${buffer} without a fence`,
      expected: `${buffer} filled by instructions whose written operand is declared \`fenced\``,
      hint: 'tensorize the copy with an instruction that writes through the proxy or ends with a fence',
    })
  }
}
