/**
 * What a plan computes in 32 bits, for given sizes: bounds of every extent, index and condition, by exact interval
 * arithmetic, without running anything. Kernels count and address in i32 and cannot tell where that wraps.
 *
 * Arithmetic on data wraps as i32 does, and so does what the text of a kernel computes as a value or compares: the
 * reference wraps there too. What leads to an iteration or to an element is exact, or reported.
 */
import { isFloat } from './dtype.ts'
import { type Expr, THREAD_AXES, type ThreadAxis, variable } from './expr.ts'
import { children, substitute } from './expr-tree.ts'
import { ANY, beyond, HIGHEST, type Interval, interval, intervalOf, LOWEST, NATURAL } from './interval.ts'
import { keyOf } from './keys.ts'
import type { Buffer, For, Launch, Plan, Stmt } from './loops.ts'
import { type Body, bodiesOf, exprsOf, piecesOf } from './tree.ts'

/** Least and greatest value of each parameter; of those that it lacks nothing is known. */
export type Box = ReadonlyMap<string, readonly [number, number]>

export interface Overflow {
  readonly launch: string
  /** What the expression is. */
  readonly of:
    | { readonly kind: 'loop'; readonly loop: For }
    | { readonly kind: 'grid'; readonly axis: ThreadAxis }
    | { readonly kind: 'condition' }
    | { readonly kind: 'index'; readonly buffer: string }
  /** Over parameters, loops and index arrays: no name is a `let`. */
  readonly expr: Expr
  readonly lo: number
  readonly hi: number
}

/** The first place where a plan leaves 32 bits for some sizes of the box, if there may be one. */
export function overflowOf(plan: Plan, box: Box): Overflow | undefined {
  for (const step of plan.steps) {
    if (step.kind === 'clear') continue
    // What conditions say is only asked where it matters: near the limit.
    const found = new Walk(plan, step, box, false).run() && new Walk(plan, step, box, true).run()
    if (found) return found
  }
  return undefined
}

type Known = ReadonlyMap<string, readonly [number, number]>

/** What a comparison says of the other side. */
interface Said {
  readonly over: Ranged['over']
  readonly lo: number
  readonly hi: number
}

/** What holds in a body: bounds by expression, from the conditions around it. */
interface Scope {
  readonly bounds: Known
  readonly memo: Map<Expr, Ranged>
  /** Conditions with a name that have been looked at. */
  readonly seen: Set<string>
}

const scopeOf = (bounds: Known): Scope => ({ bounds, memo: new Map(), seen: new Set() })

/** Bounds, and the part of the expression that leaves 32 bits. */
type Ranged = Interval & { readonly over?: Pick<Overflow, 'expr' | 'lo' | 'hi'> }

class Found {
  readonly overflow: Overflow

  constructor(overflow: Overflow) {
    this.overflow = overflow
  }
}

class Walk {
  readonly #launch: Launch
  readonly #box: Box
  /** Whether conditions bound what they mention. */
  readonly #refine: boolean
  readonly #buffers: ReadonlyMap<string, Buffer>
  readonly #lets = new Map<string, Expr>()
  readonly #loops = new Map<string, Interval>()
  /** Registers that hold positions, and what these are below where that is known. */
  readonly #places = new Map<string, Expr | undefined>()
  /** What a user calls loops. */
  readonly #named = new Map<string, Expr>()

  constructor(plan: Plan, launch: Launch, box: Box, refine: boolean) {
    this.#launch = launch
    this.#box = box
    this.#refine = refine
    this.#buffers = new Map(plan.buffers.map((b) => [b.name, b]))
  }

  run(): Overflow | undefined {
    const scope = scopeOf(new Map())
    try {
      const blocks = this.#launch.grid.map((e, k) =>
        this.#exact(e, scope, { kind: 'grid', axis: THREAD_AXES[k]! }),
      )
      if (blocks.some((b) => b.hi <= 0)) return undefined
      const extents = [...blocks, ...this.#launch.block.map((n) => interval(n, n))]
      for (const [k, x] of extents.entries()) this.#loops.set(THREAD_AXES[k]!, below(x))
      this.#body(this.#launch.body, scope)
      return undefined
    } catch (e) {
      if (e instanceof Found) return e.overflow
      throw e
    }
  }

  #body(body: Body, scope: Scope): void {
    for (const s of body) this.#statement(s, scope)
  }

  #statement(s: Stmt, scope: Scope): void {
    switch (s.kind) {
      // Its bounds are asked where it is used: what stands before a condition may only matter behind it.
      case 'let':
        this.#value(s.value, scope)
        this.#define(scope, s.name, this.#lets, s.value)
        return
      case 'for': {
        const extent = this.#exact(s.extent, scope, { kind: 'loop', loop: s })
        if (extent.hi <= 0) return
        this.#define(scope, s.var, this.#loops, below(extent))
        if (s.name !== s.var) this.#named.set(s.var, variable(s.name))
        break
      }
      case 'if':
        this.#value(s.cond, scope, true)
        if (this.#of(s.cond, scope).hi > 0) this.#body(s.then, this.#where(s.cond, scope))
        this.#body(s.else, scope)
        return
      case 'alloc':
        if (s.buffer.scope === 'register' && s.buffer.role === 'index')
          this.#define(scope, s.buffer.name, this.#places, s.buffer.below)
        for (const e of s.buffer.shape) this.#value(e, scope)
        return
      case 'store':
        for (const e of s.index) this.#exact(e, scope, { kind: 'index', buffer: s.buffer })
        this.#value(s.value, scope)
        return
      case 'reduce':
        for (const t of s.targets) this.#value(t, scope)
        for (const e of s.values) this.#value(e, scope)
        return
      case 'vector_store':
        this.#value(s.target, scope)
        for (const e of s.values) this.#value(e, scope)
        return
      case 'instr':
        for (const p of piecesOf(s))
          if (p.kind === 'value') this.#value(p.value, scope)
          else for (const e of p.index) this.#exact(e, scope, { kind: 'index', buffer: p.buffer })
        return
      default:
        for (const e of exprsOf(s)) this.#value(e, scope)
    }
    for (const b of bodiesOf(s)) this.#body(b, scope)
  }

  /** Copies of a body may have names in common. */
  #define<T>(scope: Scope, name: string, names: Map<string, T>, value: T): void {
    if (names.has(name)) {
      scope.memo.clear()
      scope.seen.clear()
    }
    names.set(name, value)
  }

  /** Bounds of what has to be exact. */
  #exact(e: Expr, scope: Scope, of: Overflow['of']): Interval {
    const range = this.#of(e, scope)
    if (range.over) this.#fail(of, range.over)
    return range
  }

  #fail(of: Overflow['of'], over: Pick<Overflow, 'expr' | 'lo' | 'hi'>): never {
    throw new Found({ launch: this.#launch.name, of, ...over, expr: this.#written(over.expr) })
  }

  /** The expression without names of the launch. */
  #written(e: Expr): Expr {
    let out = e
    for (;;) {
      const next = substitute(out, this.#lets)
      if (next === out || isLong(next)) break
      out = next
    }
    return substitute(out, this.#named)
  }

  /** What is computed as a value: accesses in it are exact, and conditions that no text of a kernel states. */
  #value(e: Expr, scope: Scope, condition = false): void {
    switch (e.kind) {
      case 'var': {
        const value = condition ? this.#lets.get(e.name) : undefined
        if (!value || scope.seen.has(e.name)) return
        scope.seen.add(e.name)
        this.#value(value, scope, true)
        return
      }
      case 'load':
      case 'search':
        for (const x of children(e)) this.#exact(x, scope, { kind: 'index', buffer: e.buffer })
        return
      case 'select':
        this.#value(e.cond, scope, true)
        if (this.#of(e.cond, scope).hi > 0) this.#value(e.then, this.#where(e.cond, scope))
        this.#value(e.else, scope)
        return
      case 'binary':
        if (e.op === 'and') {
          this.#value(e.a, scope, condition)
          this.#value(e.b, this.#where(e.a, scope), condition)
          return
        }
        if (condition && e.dtype === 'bool' && e.op !== 'or') {
          const over = this.#of(e.a, scope).over ?? this.#of(e.b, scope).over
          if (over && !over.expr.span) this.#fail({ kind: 'condition' }, over)
        }
    }
    for (const x of children(e)) this.#value(x, scope, condition && e.dtype === 'bool')
  }

  #of(e: Expr, scope: Scope): Ranged {
    let known = scope.memo.get(e)
    if (!known) {
      known = this.#bounded(e, this.#compute(e, scope), scope)
      scope.memo.set(e, known)
    }
    return known
  }

  #compute(e: Expr, scope: Scope): Ranged {
    if (isFloat(e.dtype)) return intervalOf(e, [], () => undefined)
    switch (e.kind) {
      case 'var': {
        const value = this.#lets.get(e.name)
        if (value) return this.#of(value, scope)
        const given = this.#box.get(e.name)
        return this.#loops.get(e.name) ?? (given ? interval(given[0], given[1]) : ANY)
      }
      case 'builtin':
        return this.#loops.get(e.axis) ?? NATURAL
      case 'load':
      case 'search':
        return this.#loaded(e, scope)
      case 'binary': {
        const length = this.#segmentOf(e, scope)
        if (length) return length
      }
    }
    const operands =
      e.kind === 'select'
        ? [this.#of(e.cond, scope), this.#of(e.then, this.#where(e.cond, scope)), this.#of(e.else, scope)]
        : children(e).map((x) => this.#of(x, scope))
    const over = operands.find((x) => x.over)?.over
    const range = intervalOf(e, operands, () => undefined)
    if (e.dtype === 'bool') return over ? { ...range, over } : range
    if (range.fits) return over ? { ...range, over } : range
    // What data give is not known, and u32 is for what wraps.
    if (over || e.dtype !== 'i32' || !beyond(range)) return over ? { ...ANY, over } : ANY
    return { ...ANY, over: { expr: e, lo: range.lo, hi: range.hi } }
  }

  #loaded(e: Extract<Expr, { kind: 'load' | 'search' }>, scope: Scope): Ranged {
    const over = children(e)
      .map((x) => this.#of(x, scope))
      .find((x) => x.over)?.over
    const buffer = this.#buffers.get(e.buffer)
    let range: Interval = ANY
    if (e.kind === 'search') range = between(this.#of(e.lo, scope), this.#of(e.hi, scope))
    else if (e.dtype === 'bool') range = interval(0, 1)
    else if (e.dtype === 'u8') range = interval(0, 255)
    else if (e.dtype === 'i8') range = interval(-128, 127)
    else if (this.#places.has(e.buffer)) range = this.#place(this.#places.get(e.buffer), scope)
    else if (buffer?.below) range = below(this.#of(buffer.below, scope))
    // Where a segment begins says how much is left: what is added to it is no evidence.
    else if (buffer?.positions) range = interval(0, upTo(this.#of(buffer.positions, scope)).hi, true, false)
    return over ? { ...range, over } : range
  }

  /** What a register that holds a position may hold. */
  #place(below_: Expr | undefined, scope: Scope): Interval {
    return below_ ? below(this.#of(below_, scope)) : NATURAL
  }

  /**
   * `offsets[p + 1] - offsets[p]`: a segment is no longer than all of them. `x - offsets[p]` for the place of `x`: where in its
   * segment it is.
   */
  #segmentOf(e: Extract<Expr, { kind: 'binary' }>, scope: Scope): Ranged | undefined {
    if (e.op !== 'sub') return undefined
    const [a, b] = [this.#defined(e.a), this.#defined(e.b)]
    if (b.kind !== 'load') return undefined
    const positions = this.#buffers.get(b.buffer)?.positions
    const alike = a.kind === 'load' && a.buffer === b.buffer
    if (!positions || !(alike || this.#isFound(b.index[0]!))) return undefined
    const over = this.#of(a, scope).over ?? this.#of(b, scope).over
    const most = upTo(this.#of(alike ? positions : a, scope))
    return over ? { ...most, over } : most
  }

  /** Whether this is the segment that a search found: the one before the first that begins later. */
  #isFound(index: Expr): boolean {
    const e = this.#defined(index)
    if (e.kind !== 'binary' || e.op !== 'sub' || e.b.kind !== 'const') return false
    const found = this.#defined(e.a)
    return found.kind === 'search' || (found.kind === 'load' && this.#places.has(found.buffer))
  }

  #defined(e: Expr): Expr {
    let out = e
    while (out.kind === 'var') {
      const value = this.#lets.get(out.name)
      if (!value) break
      out = value
    }
    return out
  }

  /** The range within what conditions say. */
  #bounded(e: Expr, range: Ranged, { bounds }: Scope): Ranged {
    const said = bounds.size > 0 && e.kind !== 'const' ? bounds.get(keyOf(e)) : undefined
    if (!said) return range
    const [lo, hi] = [Math.max(range.lo, said[0]), Math.min(range.hi, said[1])]
    // Whoever contradicts what is known is never reached.
    const knownLo = said[0] > LOWEST && said[0] >= range.lo
    const knownHi = said[1] < HIGHEST && said[1] <= range.hi
    return {
      ...interval(lo, Math.max(lo, hi), knownLo || range.knownLo, knownHi || range.knownHi),
      ...('over' in range && range.over ? { over: range.over } : {}),
    }
  }

  /** The scope where the condition holds. */
  #where(cond: Expr, scope: Scope): Scope {
    if (!this.#refine) return scope
    const bounds = new Map(scope.bounds)
    const before = bounds.size
    let narrower = false
    const say = (e: Expr, lo: number, hi: number): void => {
      const range = this.#of(e, scope)
      if (range.over || (lo <= range.lo && hi >= range.hi)) return
      narrower = true
      const names: Expr[] = [e]
      for (let x = e; x.kind === 'var'; ) {
        const value = this.#lets.get(x.name)
        if (!value) break
        names.push(value)
        x = value
      }
      for (const x of names) {
        if (x.kind === 'const') continue
        const said = bounds.get(keyOf(x)) ?? [LOWEST, HIGHEST]
        bounds.set(keyOf(x), [Math.max(said[0], lo), Math.min(said[1], hi)])
      }
      // x + c is bounded as x is.
      const sum = names.at(-1)!
      if (sum.kind === 'binary' && sum.op === 'add' && sum.b.kind === 'const')
        say(sum.a, lo - sum.b.value, hi - sum.b.value)
    }
    const read = (e: Expr): void => {
      const c = this.#defined(e)
      if (c.kind !== 'binary') return
      if (c.op === 'and') {
        read(c.a)
        read(c.b)
        return
      }
      if (c.a.dtype !== 'i32' || c.b.dtype !== 'i32') return
      const [a, b] = [this.#of(c.a, scope), this.#of(c.b, scope)].map((x) => ({
        over: x.over,
        lo: x.knownLo ? x.lo : Number.NEGATIVE_INFINITY,
        hi: x.knownHi ? x.hi : Number.POSITIVE_INFINITY,
      })) as [Said, Said]
      if (a.over || b.over) return
      if (c.op === 'lt' || c.op === 'le' || c.op === 'eq')
        say(c.a, c.op === 'eq' ? b.lo : Number.NEGATIVE_INFINITY, b.hi - (c.op === 'lt' ? 1 : 0))
      if (c.op === 'gt' || c.op === 'ge') say(c.a, b.lo + (c.op === 'gt' ? 1 : 0), Number.POSITIVE_INFINITY)
      if (c.op === 'lt' || c.op === 'le') say(c.b, a.lo + (c.op === 'lt' ? 1 : 0), Number.POSITIVE_INFINITY)
      if (c.op === 'gt' || c.op === 'ge' || c.op === 'eq')
        say(c.b, c.op === 'eq' ? a.lo : Number.NEGATIVE_INFINITY, a.hi - (c.op === 'gt' ? 1 : 0))
    }
    read(cond)
    return narrower || bounds.size > before ? scopeOf(bounds) : scope
  }
}

/** Names keep a text short that would be of many lines without them. */
function isLong(e: Expr): boolean {
  let nodes = 0
  const count = (x: Expr): boolean => ++nodes > 60 || children(x).some(count)
  return count(e)
}

/** What an index runs over whose end this is. */
const below = (extent: Interval): Interval => interval(0, Math.max(0, extent.hi - 1), true, extent.knownHi)

const upTo = (most: Interval): Interval => interval(0, Math.max(0, most.hi), true, most.knownHi)

/** What a search finds: where it begins, or as far as it goes. */
const between = (from: Interval, to: Interval): Interval =>
  interval(from.lo, Math.max(from.hi, to.hi), from.knownLo, from.knownHi && to.knownHi)
