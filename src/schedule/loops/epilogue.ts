/**
 * `compute_at scale at jt` where `scale` stands after the nest of `jt`: once an iteration of `jt` is done, what it has
 * produced is consumed at its end. The consumer's loops become those of the elements that the iteration produces.
 */
import { accessesOf, writesOf } from '../../ir/accesses.ts'
import { substituteStmts } from '../../ir/bindings.ts'
import { ceildiv, type Expr, int, variable } from '../../ir/expr.ts'
import { freeVars, mentions, substitute } from '../../ir/expr-tree.ts'
import { isMultiple } from '../../ir/facts.ts'
import { keyOf } from '../../ir/keys.ts'
import { linear, linearKey } from '../../ir/linear.ts'
import type { For, Reduce, Stmt, Store } from '../../ir/loops.ts'
import { closeOver } from '../../ir/reductions.ts'
import { type Body, bodiesOf, type Found, replaceLoop, replaceStmt, stmt } from '../../ir/tree.ts'
import { allocations, type Context } from '../context.ts'
import { iterationsOf } from '../depend.ts'
import { gone, type Outcome } from '../primitive.ts'

/** The consumer nest and the statement around the producing loop, in one list. */
export interface Pair {
  readonly list: Body
  readonly producer: Stmt
  readonly consumer: For
}

export function consumeAt(cx: Context, at: Found, { list, producer, consumer }: Pair): Outcome {
  const { loop } = at
  const refuse = (code: string, message: string, loops: readonly For[], hint?: string): never =>
    cx.refuse({ code, message, loops, ...(hint ? { hint } : {}) })
  const chain = perfectChain(consumer)
  const written = writesOf([producer])
  const reads = accessesOf([consumer]).filter((a) => a.mode === 'read' && written.has(a.buffer))
  const produced = [...new Set(reads.map((a) => a.buffer))]
  if (produced.length === 0)
    refuse('not-read', `${consumer.nest} reads nothing that is written around ${loop.name}`, [loop, consumer])
  const own = accessesOf([consumer])
  const between = accessesOf([producer, ...list.slice(list.indexOf(producer) + 1, list.indexOf(consumer))])
  const local = allocations([consumer])
  const clash = between.find((a) =>
    own.some(
      (b) =>
        a.buffer === b.buffer &&
        !local.has(a.buffer) &&
        (a.mode === 'write' || b.mode === 'write') &&
        !(produced.includes(a.buffer) && b.mode === 'read' && inside(producer, a.stmt)),
    ),
  )
  if (clash)
    refuse('order-matters', `${consumer.nest} and what comes before it both use ${clash.buffer}`, [consumer])
  for (const l of chain)
    if (iterationsOf(cx.kernel, l).dependence) refuse('order-matters', `the order of ${l.name} matters`, [l])

  // What each loop of the consumer stands for, by the elements that the iteration produces.
  const values = new Map<string, Expr>()
  const exact = new Map<string, boolean>()
  let clones: readonly For[] = []
  for (const name of produced) {
    const write = onlyWrite(cx, at, producer, name)
    const inner = closeOver(write.path, write.index)
    const changing = inner.find((l) => l.reduce) ?? [...at.path, loop].find((l) => l.reduce)
    if (changing)
      refuse(
        'not-complete',
        `${name} is not complete after an iteration of ${loop.name}: ${changing.name} goes on`,
        [loop, changing],
        `choose a loop outside of ${changing.name}`,
      )
    const fresh = new Map(inner.map((l) => [l.var, cx.fresh(l.name)] as const))
    const map = new Map<string, Expr>([...fresh].map(([v, f]) => [v, variable(f)]))
    if (clones.length === 0)
      clones = inner.map((l) => ({
        ...l,
        var: fresh.get(l.var)!,
        nest: consumer.nest,
        mode: l.mode.kind === 'bind' ? l.mode : { kind: 'serial' },
        extent: substitute(l.extent, map),
        guards: l.guards.map((g) => substitute(g, map)),
      }))
    const around = [...at.path, loop, ...write.path]
    for (const a of reads.filter((r) => r.buffer === name)) {
      for (const [d, e] of a.index.entries()) {
        const of = e.kind === 'var' ? chain.find((l) => l.var === e.name) : undefined
        if (!of)
          return refuse(
            'other-elements',
            `${consumer.nest} reads other elements of ${name} than one for each iteration`,
            [consumer],
          )
        const made = write.index[d]!
        exact.set(of.var, covers(cx, of, made, around, name))
        const value = substitute(made, map)
        const known = values.get(of.var)
        // Copies of one loop are one: the first buffer's.
        if (!known) values.set(of.var, value)
        else if (keyOf(known) !== keyOf(value) && linearKey(linear(known)) !== linearKey(linear(value)))
          refuse(
            'other-elements',
            `${consumer.nest} reads elements that different iterations of ${loop.name} produce`,
            [consumer, loop],
          )
      }
    }
    checkGuards(cx, around, write.index, chain, { values, exact, map })
  }
  const open = chain.find((l) => !values.has(l.var))
  if (open)
    refuse('other-elements', `what ${consumer.nest} reads does not depend on ${open.name}`, [consumer, open])
  const core = substituteStmts(chain.at(-1)!.body, values)
  const nest = clones.reduceRight<Body>((body, l) => [stmt<For>({ ...l, body })], core)
  const without = replaceStmt(cx.kernel.body, consumer, () => [])
  return {
    body: replaceLoop(without, loop.var, (l) => stmt({ ...l, body: [...l.body, ...nest] })),
    gone: chain.map((l) => gone(l, 'merged', [loop.name])),
  }
}

/** The loops from the nest's top on that stand directly inside of each other and run over different elements. */
function perfectChain(top: For): readonly For[] {
  const out: For[] = []
  for (let s: Stmt | undefined = top; s?.kind === 'for' && !s.reduce && s.mode.kind === 'serial'; ) {
    out.push(s)
    s = s.body.length === 1 ? s.body[0] : undefined
  }
  return out
}

const inside = (s: Stmt, x: Stmt): boolean => s === x || bodiesOf(s).some((b) => b.some((y) => inside(y, x)))

interface Write {
  readonly index: readonly Expr[]
  /** The loops around it inside of the one asked about. */
  readonly path: readonly For[]
  readonly stmt: Store | Reduce
}

/** The only statement of the producer that writes the buffer, within the loop and under no condition. */
function onlyWrite(cx: Context, at: Found, producer: Stmt, buffer: string): Write {
  const writes = accessesOf([producer]).filter((a) => a.mode === 'write' && a.buffer === buffer)
  const mine = accessesOf(at.loop.body).filter((a) => a.mode === 'write' && a.buffer === buffer)
  const [write] = mine
  const sure =
    write &&
    (write.stmt.kind === 'store' || write.stmt.kind === 'reduce') &&
    !conditional(at.loop.body, write.stmt)
  if (writes.length !== 1 || !write || !sure)
    return cx.refuse({
      code: 'not-complete',
      message: `not every element of ${buffer} is written by one statement inside of ${at.loop.name}`,
      loops: [at.loop],
      hint: 'choose a loop around all that writes it',
    })
  return { index: write.index, path: write.path, stmt: write.stmt as Store | Reduce }
}

const conditional = (body: Body, target: Stmt): boolean =>
  body.some((s) => (s.kind === 'if' && inside(s, target)) || bodiesOf(s).some((b) => conditional(b, target)))

/**
 * Every value below the consumer's extent is made exactly once: a sum of digits of the loops around. Whether no others
 * are.
 */
function covers(cx: Context, of: For, made: Expr, around: readonly For[], buffer: string): boolean {
  const { terms, constant } = linear(made)
  const digits = [...terms.values()]
    .map(({ term, coefficient }) => ({
      loop: term.kind === 'var' ? around.find((l) => l.var === term.name) : undefined,
      stride: coefficient,
    }))
    .filter(({ loop }) => loop?.extent.kind !== 'const' || loop.extent.value !== 1 || terms.size === 1)
    .sort((a, b) => a.stride - b.stride)
  let next = 1
  let whole = constant === 0 && digits.length > 0 && of.guards.length === 0
  digits.forEach(({ loop, stride }, k) => {
    if (!loop || stride !== next) whole = false
    else if (k < digits.length - 1) next = loop.extent.kind === 'const' ? stride * loop.extent.value : 0
    else whole &&= enough(loop.extent, stride, of.extent)
  })
  if (!whole)
    cx.refuse({
      code: 'not-every-element',
      message: `the loops around what writes ${buffer} are not known to reach all that ${of.name} runs over`,
      loops: [of],
    })
  return isMultiple(of.extent, digits.at(-1)?.stride ?? 1, cx.kernel.facts)
}

/** Whether `count · stride` reaches `extent`, and `count - 1` times does not. */
function enough(count: Expr, stride: number, extent: Expr): boolean {
  if (count.kind === 'const' && extent.kind === 'const')
    return count.value === Math.ceil(extent.value / stride)
  return keyOf(count) === keyOf(ceildiv(extent, int(stride)))
}

/** The producer's guards say no more than where the consumer's loops end, and say it where tiles reach further. */
function checkGuards(
  cx: Context,
  around: readonly For[],
  index: readonly Expr[],
  chain: readonly For[],
  known: {
    readonly values: ReadonlyMap<string, Expr>
    readonly exact: ReadonlyMap<string, boolean>
    readonly map: ReadonlyMap<string, Expr>
  },
): void {
  const { values, exact, map } = known
  const bound = (l: For): string => linearKey(linear(values.get(l.var)!)) + keyOf(l.extent)
  const ends = new Set(chain.filter((l) => values.has(l.var)).map(bound))
  const said = new Set<string>()
  const used = new Set(index.flatMap((e) => [...freeVars(e)]))
  for (const l of around) {
    if (l.reduce) continue
    for (const g of l.guards) {
      const text =
        g.kind === 'binary' && g.op === 'lt' ? linearKey(linear(substitute(g.a, map))) + keyOf(g.b) : ''
      if (ends.has(text)) said.add(text)
      else if ([...freeVars(g)].some((v) => used.has(v)) || mentions(g, l.var))
        cx.refuse({
          code: 'not-every-element',
          message: `not every iteration of ${l.name} produces an element`,
          loops: [l],
        })
    }
  }
  for (const l of chain) {
    const value = values.get(l.var)
    if (!value || said.has(bound(l)) || exact.get(l.var)) continue
    cx.refuse({
      code: 'not-every-element',
      message: `the loops around would reach further than ${l.name}`,
      loops: [l],
    })
  }
}
