/**
 * Elaboration of declared instructions: AST → data. Bodies are elaborated in `instr-body.ts`, texts in
 * `instr-texts.ts`.
 */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { FIELD_WIDTHS, isFieldWidth } from '../../ir/coordinates/axis.ts'
import { type Instr, type Memory, type Operand, tilesOf } from '../../ir/instructions/instr.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { errorCount, repeatedIn, report } from '../diagnostics.ts'
import type { Values } from './instances.ts'
import { BodyOf } from './instr-body.ts'
import { type Texts, textsOf } from './instr-texts.ts'
import { constantOf, precisionOf, threadsOf } from './memories.ts'
import { boxesFit, boxOf } from './tensor-map-operands.ts'

/** The purposes for which asynchronous instructions must have texts; counted instructions (`COUNTED`) differ. */
const GROUPS = ['commit', 'wait'] as const
const COUNTED = ['prepare', 'expect', 'wait'] as const

const PLAIN = ['global', 'shared', 'register'] as const
const isPlain = (name: string): name is (typeof PLAIN)[number] => (PLAIN as readonly string[]).includes(name)

/** A declared memory. `plain` has the names that need no declaration, for suggestions. */
export type FindMemory = (use: Ast.Instance, plain: readonly string[]) => Memory | null

export function elaborateInstr(s: Ast.Instr, values: Values, memory: FindMemory): Instr | null {
  const before = errorCount()
  const threads = threadsOf(s.threads)
  const declared = s.operands.map((o) => operand(o, memory))
  for (const { name } of repeatedIn(s.operands.map((o) => o.name)))
    report('check/duplicate', name.span, {
      message: `instruction ${s.name.name} has two operands ${name.name}`,
      hint: `rename an operand ${name.name}`,
    })
  const bodies = s.items.filter((x) => x.kind === 'iterate')
  const [only] = bodies
  if (bodies.length !== 1 || only?.where || only?.body.length !== 1)
    return report('check/instr-body', bodies[1]?.span ?? s.name.span, {
      message: `instruction ${s.name.name} has no body of a single statement`,
      expected: 'one `iterate` over a single statement, without a condition',
    })
  if (threads === null || errorCount() > before) return null
  const operands = new Map(declared.flatMap((o) => (o ? [[o.name, o] as const] : [])))
  const body = new BodyOf(s, only, operands).read()
  if (!body) return null
  const mode = (o: Operand): Operand['mode'] =>
    o.name !== body.target
      ? 'read'
      : body.stmt.kind === 'store' && !body.reads.has(o.name)
        ? 'write'
        : 'update'
  const list = [...operands.values()].map((o): Operand => {
    const below = body.below.get(o.name)
    return { ...o, mode: mode(o), ...(below !== undefined && { below }) }
  })
  for (const o of list) {
    const n: number = o.memory?.scope === 'register' ? o.memory.threads : o.scope === 'register' ? 1 : threads
    if (n !== threads)
      report('check/instr-threads', s.name.span, {
        message: `${o.name} is held by ${n} threads, and ${s.name.name} is executed by ${threads}`,
        hint:
          n > 1
            ? `write \`by ${n} threads\` after the operands`
            : `hold ${o.name} in a memory \`in register of ${threads} threads\``,
      })
  }
  const precision = precisionOf(s)
  const words = s.words.map((w) => w.name)
  const instr = { name: s.name.name, operands: list, threads, iters: body.iters, body: body.stmt }
  const texts = textsOf(s, list, threads, values)
  const atomic = words.includes('atomic')
  if (errorCount() > before || !texts) return null
  const asynchronous = words.includes('asynchronous')
  const ordered = words.includes('ordered')
  const counted = words.includes('counted')
  const wanted = !asynchronous ? [] : counted ? COUNTED : GROUPS
  const given = [...new Set([...GROUPS, ...COUNTED])].filter((what) => texts[what].length > 0)
  const refuse = (message: string, expected: string): null =>
    report('check/instr-asynchronous', s.name.span, { message: `${s.name.name} ${message}`, expected })
  const withCount = '`asynchronous counted`, with `prepare`, `expect` and `wait TARGET …`'
  const isComplete = given.length === wanted.length && wanted.every((what) => given.includes(what))
  if (((ordered || counted) && !asynchronous) || !isComplete)
    return refuse(
      asynchronous
        ? `is asynchronous${counted ? ' and counted' : ''} and has texts for ${given.join(', ') || 'nothing of that'}`
        : `has ${given.length > 0 ? `texts for ${given.join(', ')}` : 'words for asynchronous instructions'} and is not asynchronous`,
      counted ? withCount : '`asynchronous`, `commit TARGET …` and `wait TARGET …` together',
    )
  if (texts.publish.length > 0 && !counted)
    return refuse('has a text for publish, but is not `counted`', withCount)
  if (texts.wait_read.length > 0 && (!asynchronous || counted))
    return refuse(
      `has a text for wait_read, and is ${asynchronous ? 'counted' : 'not asynchronous'}`,
      '`asynchronous`, with `commit TARGET …` and `wait TARGET …`',
    )
  const target = list.find((o) => o.name === body.target)
  if (counted && (body.stmt.kind !== 'store' || target?.scope !== 'shared' || threads !== 1))
    return refuse(
      'is `counted`, but not a copy by a single thread into shared memory',
      'a statement that assigns to an operand in shared memory, without `by … threads`',
    )
  const runs = new Set(texts.run.map((t) => t.target))
  const reaching = new Set(texts.multicast.map((t) => t.target))
  if (reaching.size > 0 && (runs.size !== reaching.size || ![...runs].every((t) => reaching.has(t))))
    return report('check/instr-text', s.name.span, {
      message: `${s.name.name} has texts for ${[...runs].join(', ')}, and for multicast on ${[...reaching].join(', ')}`,
      expected: 'a text for multicast on each target, or on none',
    })
  if (
    texts.multicast.length + texts.release.length > 0 &&
    !(counted && texts.multicast.length > 0 && texts.release.length > 0)
  )
    return refuse(
      `has ${texts.multicast.length > 0 ? 'a text for multicast' : 'a text for release'}, and ${counted ? 'not both' : 'is not counted'}`,
      '`asynchronous counted`, with `multicast TARGET …` and `release TARGET …` together',
    )
  if (!boxesFit(s, list, body.stmt) || !fillsFit(s, list, body.stmt, texts)) return null
  return {
    ...instr,
    atomic,
    body: body.stmt.kind === 'reduce' ? { ...body.stmt, atomic } : body.stmt,
    texts: texts.run,
    ...(precision !== undefined && { precision }),
    ...(texts.filled.length > 0 && { filled: texts.filled }),
    ...(texts.multicast.length > 0 && { multicast: { texts: texts.multicast, release: texts.release } }),
    ...(asynchronous
      ? {
          asynchronous: {
            commit: texts.commit,
            wait: texts.wait,
            ...(texts.wait_read.length > 0 && { waitRead: texts.wait_read }),
            ordered,
            ...(counted
              ? { mbarrier: { prepare: texts.prepare, publish: texts.publish, expect: texts.expect } }
              : {}),
          },
        }
      : {}),
    span: s.name.span,
  }
}

function operand(o: Ast.Operand, find: FindMemory): Operand | null {
  const shape = o.shape.map((e) => constantOf(e, 'an extent'))
  const align = o.aligned ? constantOf(o.aligned, 'an alignment') : 0
  const packed = o.packed ? constantOf(o.packed, 'bits') : undefined
  const ascending = o.ascending ? constantOf(o.ascending, 'neighbours') : undefined
  const mapped = o.mapped ? boxOf(o, shape) : undefined
  if ([...shape, align, packed, ascending, mapped].some((x) => x === null)) return null
  if (!indicesFit(o, packed ?? undefined, ascending ?? undefined, shape.at(-1)!)) return null
  const base = {
    name: o.name.name,
    dtype: o.type.name as Dtype,
    shape: shape as number[],
    align: align!,
    ...(packed && { packed }),
    ...(ascending && { ascending }),
    ...(mapped && { mapped }),
    ...(o.fenced && { fenced: true }),
    mode: 'read',
  } as const
  const [first, ...others] = o.memories
  const alone = others.length === 0 && first?.args.length === 0 ? first.name.name : ''
  if (isPlain(alone)) return inShared(o, alone) ? { ...base, scope: alone } : null
  const found = o.memories.map((m) => find(m, others.length > 0 ? [] : PLAIN))
  if (found.some((m) => m === null)) return null
  const [memory, ...more] = found as Memory[]
  if (!memory || !inShared(o, memory.scope)) return null
  const fits = (m: Memory): boolean =>
    m.dtype === base.dtype &&
    (m.scope === 'shared'
      ? m.shape.length === shape.length
      : m.shape.length <= shape.length &&
        tilesOf(base, m).every((n) => (m.opaque ? n === 1 : Number.isInteger(n))))
  const wrong = [memory, ...more].find((m) => !fits(m) || (more.length > 0 && m.scope !== 'shared'))
  if (!wrong) return { ...base, scope: memory.scope, memory, ...(more.length > 0 && { alternatives: more }) }
  return report('check/instr-operand', o.span, {
    message: fits(wrong)
      ? `${wrong.name} is in ${wrong.scope}, and only memories in shared memory stand for each other`
      : `${base.name} is ${base.dtype}[${shape.join(', ')}], and a tile of ${wrong.name} is ${wrong.dtype}[${wrong.shape.join(', ')}]`,
    expected: fits(wrong)
      ? 'a single memory, or several in shared memory'
      : `tiles of ${base.dtype} ${wrong.scope === 'shared' ? `with ${quantity(shape.length, 'dimension')}` : `that make up [${shape.join(', ')}]`}`,
  })
}

/**
 * True if texts for zero-fill belong to a copy of one operand from global to shared memory, and exist for every target
 * of the instruction.
 */
function fillsFit(
  s: Ast.Instr,
  operands: readonly Operand[],
  body: Instr['body'],
  { run, filled, prepare }: Texts,
): boolean {
  if (filled.length === 0) return true
  const [from, ...more] = operands.filter((o) => o.mode === 'read')
  const to = operands.find((o) => o.mode === 'write')
  const copies = body.kind === 'store' && body.value.kind === 'load' && more.length === 0
  const places = from?.scope === 'global' && !from.mapped && to?.scope === 'shared' && !to.memory
  if (!copies || !places || prepare.length > 0) {
    report('check/instr-text', s.name.span, {
      message: `${s.name.name} has a text for zero-fill, and is not a copy from global to shared memory${prepare.length > 0 ? ' without a count' : ''}`,
      expected:
        'a statement that copies an operand `in global`, which is not `mapped`, to an operand `in shared`',
    })
    return false
  }
  const [runs, fills] = [run, filled].map((list) => [...new Set(list.map((t) => t.target))].sort().join(', '))
  if (runs === fills) return true
  report('check/instr-text', s.name.span, {
    message: `${s.name.name} has texts for ${runs}, and filled texts for ${fills}`,
    expected: 'a filled text on each target, or on none',
  })
  return false
}

/**
 * True if `packed` (fields of indices in global memory) and `ascending` (runs that divide a row) of an operand are
 * valid.
 */
function indicesFit(
  o: Ast.Operand,
  packed: number | undefined,
  ascending: number | undefined,
  row: number,
): boolean {
  const place = o.memories[0]?.name.name
  const fits = packed === undefined || (isFieldWidth(packed) && place === 'global' && !o.mapped)
  const runs = ascending === undefined || row % ascending === 0
  if (fits && runs && (o.type.name === 'i32' || (packed ?? ascending) === undefined)) return true
  report('check/instr-operand', o.span, {
    message: `${o.name.name} is ${packed === undefined ? '' : `packed ${packed}, `}${ascending === undefined ? '' : `ascending ${ascending}, `}${o.type.name} and in ${place} memory, in rows of ${row}`,
    expected: fits
      ? 'an operand of i32, in whose rows there are multiples of the neighbours that ascend'
      : `an operand of i32 in global memory, with fields of ${FIELD_WIDTHS}`,
  })
  return false
}

function inShared(o: Ast.Operand, scope: Operand['scope']): boolean {
  if (!o.fenced || scope === 'shared') return true
  report('check/instr-operand', o.span, {
    message: `${o.name.name} is fenced, and in ${scope} memory`,
    expected: 'an operand in shared memory',
  })
  return false
}
