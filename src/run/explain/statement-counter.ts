/** Compiles the statements of a launch to counting actions for one thread. */
import { InternalError, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { children, someExpr, walkExpr } from '../../ir/expressions/expr-tree.ts'
import type { Instr } from '../../ir/instructions/instr.ts'
import type { InstrCall } from '../../ir/instructions/instr-call.ts'
import { targetsOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import type { For, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { type Body, exprsOf, someStmt, walkStmts } from '../../ir/statements/tree.ts'
import {
  type Access,
  type Action,
  accessOf,
  actionOf,
  type Counters,
  combining,
  compileValue,
  type Frame,
  holds,
  instructionWork,
  isEmpty,
  isUnknown,
  join,
  NOTHING,
  operationsOf,
  type Part,
} from './work-counters.ts'

export class StatementCounter {
  readonly #counters: Counters
  readonly #relevant: ReadonlySet<string>
  readonly #instrs: ReadonlyMap<string, Instr>

  constructor(counters: Counters, relevant: ReadonlySet<string>, instrs: ReadonlyMap<string, Instr>) {
    this.#counters = counters
    this.#relevant = relevant
    this.#instrs = instrs
  }

  body(body: Body): Part {
    return join(body.map((s) => this.#stmt(s)))
  }

  #stmt(s: Stmt): Part {
    switch (s.kind) {
      case 'for':
        return this.#loop(s)
      case 'if':
        return join([this.#expr(s.cond), this.#branches(s.cond, this.body(s.then), this.body(s.else))])
      case 'while':
        return this.#while(s.cond, s.body)
      case 'let': {
        const value = this.#expr(s.value)
        if (!this.#relevant.has(s.name)) return value
        const valueIn = compileValue(s.value)
        // Values of other lanes are unknown.
        return this.#and(value, (f) => f.vars.set(s.name, s.lane ? Number.NaN : valueIn(f)))
      }
      case 'alloc': {
        this.#counters.buffers.set(s.buffer.name, s.buffer)
        if (s.buffer.scope !== 'register' || !this.#relevant.has(s.buffer.name)) return NOTHING
        const { name, shape } = s.buffer
        const length = shape.reduce((n, e) => n * (e.kind === 'const' ? e.value : 0), 1)
        return this.#and(NOTHING, (f) => f.registers.set(name, new Float64Array(length).fill(Number.NaN)))
      }
      case 'store': {
        const part = join([
          ...[...s.index, s.value].map((e) => this.#expr(e)),
          this.#access(s.buffer, 'stores'),
        ])
        if (!this.#relevant.has(s.buffer)) return part
        const at = compileValue(s.index[0]!)
        const value = compileValue(s.value)
        return this.#and(part, (f) => put(f, s.buffer, at(f), value(f)))
      }
      case 'reduce':
        return this.#reduce(s)
      case 'instr':
        return this.#instr(s)
      case 'barrier':
        return NOTHING
      case 'fill':
      case 'rounds':
      case 'vector_load':
      case 'vector_store':
        throw new InternalError(`${s.kind} cannot stand here in Stage III`)
    }
  }

  #access(buffer: string, access: Access): Part {
    return { fixed: accessOf(this.#counters, buffer, access), moving: [] }
  }

  #and(part: Part, effect: (f: Frame) => void): Part {
    return { fixed: part.fixed, moving: [...part.moving, (f) => effect(f)] }
  }

  #loop(s: For): Part {
    const inner = join([...s.guards.map((g) => this.#expr(g)), this.#guarded(s)])
    const before = this.#expr(s.extent)
    if (s.extent.kind === 'const' && inner.moving.length === 0) {
      const times = Math.max(0, s.extent.value)
      return join([before, { fixed: new Map([...inner.fixed].map(([k, n]) => [k, n * times])), moving: [] }])
    }
    if (isEmpty(inner)) return before
    const extent = compileValue(s.extent)
    const once = actionOf(inner)
    // Iterations with identical control flow are simulated once and multiplied.
    const uniformTrips = !this.#relevant.has(s.var) && !this.#changes(s.body)
    const loop: Action = (f, weight, counts) => {
      let n = extent(f)
      if (isUnknown(n)) {
        f.assumed = true
        n = 1
      }
      if (n <= 0) return
      if (uniformTrips) {
        f.steps++
        once(f, weight * n, counts)
        return
      }
      for (let k = 0; k < n; k++) {
        f.steps++
        f.vars.set(s.var, k)
        once(f, weight, counts)
      }
    }
    return { fixed: before.fixed, moving: [...before.moving, loop] }
  }

  #guarded(s: For): Part {
    const body = this.body(s.body)
    return s.guards.reduceRight((inner, g) => this.#branches(g, inner, NOTHING), body)
  }

  /** Returns true if the body writes a relevant register declared outside, so iterations may differ in control flow. */
  #changes(body: Body): boolean {
    const own = allocatedNames(body)
    const isOutside = (b: string): boolean => this.#relevant.has(b) && !own.has(b)
    return someStmt(body, (s) => targetsOf(s).some((t) => isOutside(t.buffer)))
  }

  #while(cond: Expr, body: Body): Part {
    const test = actionOf(this.#expr(cond))
    const inner = actionOf(this.body(body))
    const value = compileValue(cond)
    const loop: Action = (f, weight, counts) => {
      for (;;) {
        f.steps++
        test(f, weight, counts)
        const c = value(f)
        if (!holds(c, f)) return
        inner(f, weight, counts)
        if (isUnknown(c)) return
      }
    }
    return { fixed: new Map(), moving: [loop] }
  }

  #branches(cond: Expr, then: Part, otherwise: Part): Part {
    if (isEmpty(then) && isEmpty(otherwise)) return NOTHING
    const value = compileValue(cond)
    const yes = actionOf(then)
    const no = actionOf(otherwise)
    const act: Action = (f, weight, counts) => (holds(value(f), f) ? yes : no)(f, weight, counts)
    return { fixed: new Map(), moving: [act] }
  }

  #expr(e: Expr): Part {
    const [first, ...rest] = children(e).map((x) => this.#expr(x))
    if (e.kind === 'select') return join([first!, this.#branches(e.cond, rest[0]!, rest[1]!)])
    if (e.kind === 'binary' && isShort(e.op))
      return join([
        first!,
        this.#branches(e.a, e.op === 'and' ? rest[0]! : NOTHING, e.op === 'and' ? NOTHING : rest[0]!),
      ])
    const operations = operationsOf(e)
    const own: Part[] = operations > 0 ? [this.#operations(operations)] : []
    if (e.kind === 'load') own.push(this.#access(e.buffer, 'loads'))
    return join([...(first ? [first] : []), ...rest, ...own])
  }

  #operations(n: number): Part {
    return { fixed: new Map([[this.#counters.at('plain'), n]]), moving: [] }
  }

  #reduce(s: Reduce): Part {
    const rounds = s.lanes ? Math.log2(s.lanes.width) : 1
    const accesses: readonly Access[] = s.atomic ? ['atomics'] : ['loads', 'stores']
    const n = combining(s) * rounds
    const part = join([
      ...[...s.targets.flatMap((t) => t.index), ...s.values].map((e) => this.#expr(e)),
      ...s.targets.flatMap((t) => accesses.map((a) => this.#access(t.buffer, a))),
      ...(n > 0 ? [this.#operations(n)] : []),
    ])
    if (!s.targets.some((t) => this.#relevant.has(t.buffer))) return part
    const at = s.targets.map((t) => compileValue(t.index[0]!))
    const old = s.targets.map((t) => compileValue(t))
    const values = s.values.map(compileValue)
    const results = s.reducer.result.map(compileValue)
    return this.#and(part, (f) => {
      const operands = new Map([
        ...s.reducer.left.map((v, k) => [v.name, old[k]!(f)] as const),
        ...s.reducer.right.map((v, k) => [v.name, values[k]!(f)] as const),
      ])
      const inside: Frame = { ...f, vars: operands }
      const next = results.map((r) => (s.lanes ? Number.NaN : r(inside)))
      s.targets.forEach((t, k) => {
        put(f, t.buffer, at[k]!(f), next[k]!)
      })
    })
  }

  #instr(s: InstrCall): Part {
    const instr = this.#instrs.get(s.instr)
    invariant(instr, `no instruction ${s.instr}`)
    const pieces = s.texts.flatMap((t) => t.pieces)
    const values = (s.texts[0]?.pieces ?? []).flatMap((p) =>
      typeof p !== 'string' && p.kind === 'value' ? [this.#expr(p.value)] : [],
    )
    const part = join([...values, { fixed: instructionWork(this.#counters, s, instr), moving: [] }])
    const written = pieces.flatMap((p) =>
      typeof p !== 'string' && p.kind !== 'value' && p.mode !== 'read' && this.#relevant.has(p.buffer)
        ? [p.buffer]
        : [],
    )
    if (written.length === 0) return part
    return this.#and(part, (f) => {
      for (const b of written) f.registers.get(b)?.fill(Number.NaN)
    })
  }
}

/** Writes a register. If the index is unknown, all elements become unknown. */
function put(f: Frame, buffer: string, at: number, value: number): void {
  const registers = f.registers.get(buffer)
  if (isUnknown(at)) registers?.fill(Number.NaN)
  else if (registers) registers[at] = value
}

// Backward slice of a launch's control flow: only names in this slice need values to count operations.

const isShort = (op: string): boolean => op === 'and' || op === 'or'

/** Names of loop variables, lets, hardware indices (`thread.x`) and buffers that affect control flow. */
export function relevantNames(body: Body): ReadonlySet<string> {
  const names = new Set<string>()
  const take = (e: Expr): void =>
    walkExpr(e, (x) => {
      if (x.kind === 'var') names.add(x.name)
      if (x.kind === 'builtin') names.add(x.axis)
      if (x.kind === 'load' || x.kind === 'search') names.add(x.buffer)
    })
  walkStmts(body, (s) => {
    for (const e of controlOf(s)) take(e)
    for (const e of exprsOf(s))
      walkExpr(e, (x) => {
        if (x.kind === 'select' && (works(x.then) || works(x.else))) take(x.cond)
        if (x.kind === 'binary' && isShort(x.op) && works(x.b)) take(x.a)
      })
  })
  // Transitive closure over definitions.
  for (let before = -1; before !== names.size; ) {
    before = names.size
    walkStmts(body, (s) => {
      const isRelevant = s.kind === 'let' ? names.has(s.name) : targetsOf(s).some((t) => names.has(t.buffer))
      if (isRelevant) exprsOf(s).forEach(take)
    })
  }
  return names
}

/** Returns true if an expression contains counted work. */
const works = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'load' || operationsOf(x) > 0)

function controlOf(s: Stmt): readonly Expr[] {
  if (s.kind === 'for') return [s.extent, ...s.guards]
  return s.kind === 'if' || s.kind === 'while' ? [s.cond] : []
}
