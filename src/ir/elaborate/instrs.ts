/** Declared instructions: AST → data. What the body says of operands is checked; texts are in `instr-texts.ts`. */
import type * as Ast from '../../ast/nodes.ts'
import type { Dtype } from '../dtype.ts'
import { type Load, load, variable } from '../expr.ts'
import type { Instr, InstrIter, Memory, Operand } from '../instr.ts'
import type { Reduce, Store } from '../loops.ts'
import { builtinMonoid, isBuiltinReducer } from '../monoid.ts'
import { elaborateExpr, type Names } from './expressions.ts'
import type { Values } from './instances.ts'
import { textsOf } from './instr-texts.ts'
import { boxesFit, boxOf } from './mapped.ts'
import { constantOf, threadsOf } from './memories.ts'
import type { Report } from './report.ts'
import { coerce, plain, type Typed } from './types.ts'

/** The texts that asynchronous instructions have. */
const GROUPS = ['commit', 'wait'] as const
const COUNTED = ['prepare', 'expect', 'wait'] as const

const PLAIN = ['global', 'shared', 'register'] as const
const isPlain = (name: string): name is (typeof PLAIN)[number] => (PLAIN as readonly string[]).includes(name)

/** What finds a declared memory; `plain`: what stands for itself. */
export type FindMemory = (use: Ast.Instance, plain: readonly string[]) => Memory | null

/** An instruction whose parameters have values, in the text as well. */
export function elaborateInstr(
  s: Ast.Instr,
  values: Values,
  memory: FindMemory,
  report: Report,
): Instr | null {
  const before = report.count
  const threads = threadsOf(s.threads, report)
  const declared = s.operands.map((o) => operand(o, memory, report))
  const seen = new Set<string>()
  for (const o of s.operands) {
    if (seen.has(o.name.name))
      report.error({
        code: 'check/duplicate',
        message: `instruction ${s.name.name} has two operands ${o.name.name}`,
        span: o.name.span,
      })
    seen.add(o.name.name)
  }
  const bodies = s.items.filter((x) => x.kind === 'iterate')
  const [only] = bodies
  if (bodies.length !== 1 || only?.where || only?.body.length !== 1)
    return report.error({
      code: 'check/instr-body',
      message: `instruction ${s.name.name} does not say what it computes in one statement`,
      span: bodies[1]?.span ?? s.name.span,
      expected: 'one `iterate` over one statement, without a condition',
    })
  if (threads === null || report.count > before) return null
  const operands = new Map(declared.flatMap((o) => (o ? [[o.name, o] as const] : [])))
  const body = new BodyOf(s, only, operands, report).read()
  if (!body) return null
  const mode = (o: Operand): Operand['mode'] =>
    o.name !== body.target
      ? 'read'
      : body.stmt.kind === 'store' && !body.reads.has(o.name)
        ? 'write'
        : 'update'
  const list = [...operands.values()].map((o) => ({ ...o, mode: mode(o) }))
  for (const o of list) {
    const n: number = o.memory?.scope === 'register' ? o.memory.threads : o.scope === 'register' ? 1 : threads
    if (n !== threads)
      report.error({
        code: 'check/instr-threads',
        message: `${o.name} is held by ${n} threads, and ${s.name.name} is executed by ${threads}`,
        span: s.name.span,
      })
  }
  const words = s.words.map((w) => w.name)
  const instr = { name: s.name.name, operands: list, threads, iters: body.iters, body: body.stmt }
  const texts = textsOf(s, list, threads, values, report)
  const atomic = words.includes('atomic')
  if (report.count > before || !texts) return null
  const asynchronous = words.includes('asynchronous')
  const ordered = words.includes('ordered')
  const counted = words.includes('counted')
  const wanted = !asynchronous ? [] : counted ? COUNTED : GROUPS
  const given = [...new Set([...GROUPS, ...COUNTED])].filter((what) => texts[what].length > 0)
  if (
    ((ordered || counted) && !asynchronous) ||
    given.length !== wanted.length ||
    !wanted.every((what) => given.includes(what))
  )
    return report.error({
      code: 'check/instr-asynchronous',
      message: asynchronous
        ? `${s.name.name} is asynchronous${counted ? ' and counted' : ''} and has texts for ${given.join(', ') || 'nothing of that'}`
        : `${s.name.name} has ${given.length > 0 ? `texts for ${given.join(', ')}` : 'words for asynchronous instructions'} and is not asynchronous`,
      span: s.name.span,
      expected: counted
        ? '`asynchronous counted`, with `prepare`, `expect` and `wait TARGET …`'
        : '`asynchronous`, `commit TARGET …` and `wait TARGET …` together',
    })
  if (texts.publish.length > 0 && !counted)
    return report.error({
      code: 'check/instr-asynchronous',
      message: `${s.name.name} has a text for publish, and does not count what it copies`,
      span: s.name.span,
      expected: '`asynchronous counted`, with `prepare`, `expect` and `wait TARGET …`',
    })
  const target = list.find((o) => o.name === body.target)
  if (counted && (body.stmt.kind !== 'store' || target?.scope !== 'shared' || threads !== 1))
    return report.error({
      code: 'check/instr-asynchronous',
      message: `${s.name.name} is counted, and no copy of one thread into shared memory`,
      span: s.name.span,
      expected: 'one statement that assigns to an operand in shared memory, without `by … threads`',
    })
  const runs = new Set(texts.run.map((t) => t.target))
  const reaching = new Set(texts.multicast.map((t) => t.target))
  if (reaching.size > 0 && (runs.size !== reaching.size || ![...runs].every((t) => reaching.has(t))))
    return report.error({
      code: 'check/instr-text',
      message: `${s.name.name} has texts for ${[...runs].join(', ')}, and for multicast on ${[...reaching].join(', ')}`,
      span: s.name.span,
      expected: 'a text for multicast on each target, or on none',
    })
  if (
    texts.multicast.length + texts.release.length > 0 &&
    !(counted && texts.multicast.length > 0 && texts.release.length > 0)
  )
    return report.error({
      code: 'check/instr-asynchronous',
      message: `${s.name.name} has ${texts.multicast.length > 0 ? 'a text for multicast' : 'a text for release'}, and ${counted ? 'not both' : 'does not count what it copies'}`,
      span: s.name.span,
      expected: '`asynchronous counted`, with `multicast TARGET …` and `release TARGET …` together',
    })
  if (!boxesFit(s, list, body.stmt, report)) return null
  return {
    ...instr,
    atomic,
    body: body.stmt.kind === 'reduce' ? { ...body.stmt, atomic } : body.stmt,
    texts: texts.run,
    ...(texts.multicast.length > 0 ? { multicast: { texts: texts.multicast, release: texts.release } } : {}),
    ...(asynchronous
      ? {
          asynchronous: {
            commit: texts.commit,
            wait: texts.wait,
            ordered,
            ...(counted
              ? { counted: { prepare: texts.prepare, publish: texts.publish, expect: texts.expect } }
              : {}),
          },
        }
      : {}),
    span: s.name.span,
  }
}

function operand(o: Ast.Operand, find: FindMemory, report: Report): Operand | null {
  const shape = o.shape.map((e) => constantOf(e, 'an extent', report))
  const align = o.aligned ? constantOf(o.aligned, 'an alignment', report) : 0
  const mapped = o.mapped ? boxOf(o, shape, report) : undefined
  if (shape.some((n) => n === null) || align === null || mapped === null) return null
  const base = {
    name: o.name.name,
    dtype: o.type.name as Dtype,
    shape: shape as number[],
    align,
    ...(mapped ? { mapped } : {}),
    ...(o.fenced ? { fenced: true } : {}),
    mode: 'read',
  } as const
  const [first, ...others] = o.memories
  const alone = others.length === 0 && first?.args.length === 0 ? first.name.name : ''
  if (isPlain(alone)) return inShared(o, alone, report) ? { ...base, scope: alone } : null
  const found = o.memories.map((m) => find(m, others.length > 0 ? [] : PLAIN))
  if (found.some((m) => m === null)) return null
  const [memory, ...more] = found as Memory[]
  if (!memory || !inShared(o, memory.scope, report)) return null
  const fits = (m: Memory): boolean =>
    m.dtype === base.dtype &&
    m.shape.length === shape.length &&
    (m.scope === 'shared' || m.shape.every((n, d) => n === shape[d]))
  const wrong = [memory, ...more].find((m) => !fits(m) || (more.length > 0 && m.scope !== 'shared'))
  if (!wrong) return { ...base, scope: memory.scope, memory, ...(more.length > 0 ? { others: more } : {}) }
  return report.error({
    code: 'check/instr-operand',
    message: fits(wrong)
      ? `${wrong.name} is in ${wrong.scope}, and only memories in shared memory stand for each other`
      : `${base.name} is ${base.dtype}[${shape.join(', ')}], and a tile of ${wrong.name} is ${wrong.dtype}[${wrong.shape.join(', ')}]`,
    span: o.span,
  })
}

/** A fence is about shared memory. */
function inShared(o: Ast.Operand, scope: Operand['scope'], report: Report): boolean {
  if (!o.fenced || scope === 'shared') return true
  report.error({
    code: 'check/instr-operand',
    message: `${o.name.name} is fenced, and in ${scope} memory`,
    span: o.span,
    expected: 'an operand in shared memory',
  })
  return false
}

interface Body {
  readonly iters: readonly InstrIter[]
  readonly stmt: Store | Reduce
  readonly target: string
  readonly reads: ReadonlySet<string>
}

/** Reads the statement of an instruction. */
class BodyOf {
  readonly #s: Ast.Instr
  readonly #iterate: Ast.Iterate
  readonly #operands: ReadonlyMap<string, Operand>
  readonly #report: Report
  readonly #extents = new Map<string, number>()
  readonly #reads = new Set<string>()

  constructor(s: Ast.Instr, iterate: Ast.Iterate, operands: ReadonlyMap<string, Operand>, report: Report) {
    this.#s = s
    this.#iterate = iterate
    this.#operands = operands
    this.#report = report
  }

  read(): Body | null {
    const report = this.#report
    const [s] = this.#iterate.body
    const place = this.#iterate.span
    if (!s || (s.kind !== 'assign' && s.kind !== 'reduce') || s.targets.length !== 1)
      return report.error({
        code: 'check/instr-body',
        message: 'an instruction assigns or reduces into one operand',
        span: s?.span ?? place,
      })
    if (s.kind === 'reduce' && !isBuiltinReducer(s.reducer.name))
      return report.error({
        code: 'check/unknown-reducer',
        message: `instructions do not reduce with ${s.reducer.name}`,
        span: s.reducer.span,
        expected: '+ * min max and or',
      })
    const target = this.#access(s.targets[0]!)
    const value = elaborateExpr(s.values[0]!, this.#names(), report)
    if (!target || !value) return null
    const stored = coerce(value, target.dtype, target.buffer, s.values[0]!.span, report)
    if (!stored) return null
    const iters = this.#iters(target)
    for (const o of this.#operands.values())
      if (o.name !== target.buffer && !this.#reads.has(o.name))
        report.error({
          code: 'check/instr-operand',
          message: `nothing is said of operand ${o.name}`,
          span: this.#s.name.span,
        })
    if (!iters) return null
    const common = { span: s.span }
    const { reads } = { reads: this.#reads }
    if (s.kind === 'assign')
      return {
        iters,
        reads,
        target: target.buffer,
        stmt: { kind: 'store', buffer: target.buffer, index: target.index, value: stored, ...common },
      }
    const name = s.reducer.name
    const reducer = isBuiltinReducer(name) ? builtinMonoid(name, target.dtype) : null
    return (
      reducer && {
        iters,
        reads,
        target: target.buffer,
        stmt: {
          kind: 'reduce',
          reducer,
          targets: [target],
          values: [stored],
          init: false,
          atomic: false,
          ...common,
        },
      }
    )
  }

  #iters(target: Load): readonly InstrIter[] | null {
    const out = this.#iterate.iters.map((it): InstrIter | null => {
      const name = it.name.name
      const extent = this.#extents.get(name)
      const inTarget = target.index.some((e) => e.kind === 'var' && e.name === name)
      if (extent === undefined || (it.mode === 'S') !== inTarget)
        return this.#report.error({
          code: 'check/instr-iterator',
          message:
            extent === undefined
              ? `${name} is the index of no operand`
              : `${name} is ${it.mode === 'S' ? 'no' : 'an'} index of ${target.buffer}`,
          span: it.span,
          expected: 'S for the indices of what is written, R for the others',
        })
      return { name, extent, reduce: it.mode === 'R' }
    })
    return out.some((x) => x === null) ? null : (out as InstrIter[])
  }

  /** Operands are indexed by iterators, each as they are and once. */
  #access(e: Ast.Access): Load | null {
    const o = this.#operands.get(e.buffer.name)
    const report = this.#report
    if (!o)
      return report.error({
        code: 'check/unknown-buffer',
        message: `there is no operand ${e.buffer.name}`,
        span: e.buffer.span,
        lookup: { name: e.buffer.name, candidates: [...this.#operands.keys()] },
      })
    const iters = this.#iterate.iters.map((i) => i.name.name)
    const names = e.index.map((x) => (x.kind === 'name' && iters.includes(x.name) ? x.name : null))
    if (names.length !== o.shape.length || names.some((n, k) => n === null || names.indexOf(n) !== k))
      return report.error({
        code: 'check/instr-index',
        message: `${o.name} is not indexed by ${o.shape.length} different iterators`,
        span: e.span,
        expected: `iterators as they are: ${o.name}[${iters.slice(0, o.shape.length).join(', ')}]`,
      })
    for (const [d, n] of names.entries()) {
      const known = this.#extents.get(n!)
      if (known !== undefined && known !== o.shape[d])
        return report.error({
          code: 'check/instr-index',
          message: `${n} runs to ${known} and to ${o.shape[d]}`,
          span: e.index[d]!.span,
        })
      this.#extents.set(n!, o.shape[d]!)
    }
    return load(
      o.name,
      names.map((n) => variable(n!)),
      o.dtype,
      e.span,
    )
  }

  #names(): Names {
    const refuse = (e: Ast.Expr): null =>
      this.#report.error({
        code: 'check/unknown-name',
        message: 'an instruction computes with its operands',
        span: e.span,
      })
    return {
      name: refuse,
      field: refuse,
      access: (e): Typed | null => {
        const l = this.#access(e)
        if (l) this.#reads.add(l.buffer)
        return l && plain(l)
      },
    }
  }
}
