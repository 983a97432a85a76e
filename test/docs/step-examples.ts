/** Generated parts of the pages of schedule steps: an executed example of each step, and the error codes that it can report. */
import { readdirSync, readFileSync } from 'node:fs'
import { parseProgram } from '../../src/api/programs/program.ts'
import { printBody } from '../../src/ir/print/print-stage2.ts'
import { COORD_STEPS } from '../../src/schedule/coordinates/steps.ts'
import { LOOP_STEPS } from '../../src/schedule/primitives.ts'
import { standard } from '../support/packaged-formats.ts'
import { COORD_EXAMPLES, type Example, LOOP_EXAMPLES } from '../support/step-examples.ts'

const ROW_SUMS = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] }
}`
const PARTS = `${standard('csr', 'ell')}\n${ROW_SUMS}`
const TWO_PARTS = 'A as ell(4) where (i < 8) + csr'

/** Examples of steps with a rule of the grammar: they expand to other steps. */
const EXPANDED: Readonly<Record<string, Example>> = {
  'each part': {
    program: PARTS,
    given: TWO_PARTS,
    steps: 'each part of A as p {\n  split p.io by 8 -> (o, t)\n  bind p.o to block.x, p.t to thread.x\n}',
  },
  'each nest': {
    program: ROW_SUMS,
    steps: 'each nest of y as p {\n  fuse (p.rows) -> r\n  bind r to block.x\n}',
  },
  'merge parts': {
    program: PARTS,
    given: `${TWO_PARTS} atomic y each part of A as p { bind p.io to block.x }`,
    steps: 'merge parts of A',
  },
  use: {
    program: `${ROW_SUMS}\nschedule k.rowwise(c) { split i by c -> (io, ii)  bind io to block.x, ii to thread.x }`,
    steps: 'use rowwise(8)',
  },
}

const block = (language: string, text: string): string => `\`\`\`${language}\n${text.trim()}\n\`\`\``
const shown = (before: string, step: string, after: string): string =>
  [`Before:`, block('text', before), `After \`${step}\`:`, block('text', after)].join('\n')

const bodyOf = (text: string, steps: string): string =>
  printBody(
    parseProgram(`${text}\nschedule k.shown { ${steps} }`).kernel('k').schedule('shown').compilation.loops
      .body,
  )

/** The loops before and after the steps. */
function loops({ program, given = '', steps }: Example): string {
  const after = block('text', bodyOf(program, `${given}\n${steps}`))
  const first = block('text', bodyOf(program, given))
  if (!steps.includes('\n')) return ['Before:', first, `After \`${steps}\`:`, after].join('\n')
  return ['Before:', first, 'Steps:', block('text', steps), 'After:', after].join('\n')
}

/** Iterations and axes that an example changes, without the declarations that stay. */
function coordinates({ program, steps }: Example): string {
  const of = (schedule: string): readonly string[] =>
    parseProgram(`${program}\nschedule k.shown { ${schedule} }`)
      .kernel('k')
      .schedule('shown')
      .show(1)
      .split('\n')
  const [old, now] = [of(''), of(steps)]
  const first = old.findIndex((l) => l.includes('iterate'))
  const changed = (lines: readonly string[], others: readonly string[]): string =>
    lines
      .filter((l, k) => (/^ {2}(axis|buffer)/.test(l) ? !others.includes(l) : k > 0 && k < lines.length - 1))
      .join('\n')
  if (first < 0) throw new Error('an example without an iteration')
  return shown(dedent(changed(old, now)), steps, dedent(changed(now, old)))
}

const dedent = (text: string): string => text.replaceAll(/^ {2}/gm, '')

/** The words of the grammar that begin a step, and the rules of its own (`StepEach`, …). */
export function stepsOfGrammar(): readonly string[] {
  const grammar = readFileSync('grammar/spt.ohm', 'utf8')
  const rules = /^ {2}Step +=(.*)$/m.exec(grammar)![1]!.match(/Step\w+/g)!
  const own: Readonly<Record<string, readonly string[]>> = {
    StepEach: ['each part', 'each nest'],
    StepAs: ['as'],
    StepMerge: ['merge parts'],
    StepUse: ['use'],
    StepWord: Object.keys({ ...COORD_STEPS, ...LOOP_STEPS }),
  }
  return [...new Set(rules.flatMap((rule) => own[rule] ?? [rule]))]
}

/** The examples by heading; `fuse` and `reorder` have one on coordinates as well. */
export function examplesOfSteps(): ReadonlyMap<string, string> {
  const out = new Map<string, string>()
  for (const [word, example] of Object.entries(LOOP_EXAMPLES)) out.set(word, loops(example))
  for (const [word, example] of Object.entries(COORD_EXAMPLES))
    out.set(out.has(word) ? `${word} on coordinates` : word, coordinates(example))
  for (const [word, example] of Object.entries(EXPANDED)) out.set(word, loops(example))
  return out
}

// Error codes ------------------------------------------------------------------------------------------------

const FOLDER = 'src/schedule/'

/** Declarations of a module's top level: their names, codes, and the words that they mention. */
interface Declaration {
  readonly codes: readonly string[]
  readonly words: ReadonlySet<string>
}
interface Module {
  readonly own: ReadonlyMap<string, Declaration>
  /** Imported names, with the files that declare them. */
  readonly imports: ReadonlyMap<string, string>
}

function moduleOf(file: string): Module {
  const text = readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
  const imports = [...text.matchAll(/^import \{([^}]*)\} from '(\.[^']*)'/gm)].flatMap(([, names, from]) =>
    names!
      .split(',')
      .filter((n) => !n.includes('type '))
      .map((n): [string, string] => [n.trim(), new URL(from!, `file:///${file}`).pathname.slice(1)]),
  )
  const parts = text.split(/^(?=(?:export )?(?:const|function|class|interface|type) )/m)
  const own = parts.flatMap((part): [string, Declaration][] => {
    const name = /^(?:export )?(?:const|function|class) (\w+)/.exec(part)?.[1]
    if (!name) return []
    const codes = [...part.matchAll(/'((?:schedule|format)\/[a-z-]+)'/g)].map((m) => m[1]!)
    return [[name, { codes, words: new Set(part.match(/\w+/g)) }]]
  })
  return { own: new Map(own), imports: new Map(imports) }
}

/** The codes in the source of a step and in the functions of src/schedule that it reaches, by the step's word. */
export function codesOfSteps(): ReadonlyMap<string, readonly string[]> {
  const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((f) => f.endsWith('.ts'))
    .map((f) => FOLDER + f.replaceAll('\\', '/'))
  const modules = new Map(files.map((f) => [f, moduleOf(f)]))
  const reach = (file: string, name: string, seen: Set<string>): readonly string[] => {
    const module = modules.get(file)
    const it = module?.own.get(name)
    if (!module || !it || seen.has(`${file}#${name}`)) return []
    seen.add(`${file}#${name}`)
    const inner = [...it.words].flatMap((w) =>
      module.own.has(w)
        ? reach(file, w, seen)
        : module.imports.has(w)
          ? reach(module.imports.get(w)!, w, seen)
          : [],
    )
    return [...it.codes, ...inner]
  }
  const common = new Set(reach(`${FOLDER}state/context.ts`, 'Context', new Set()))
  const out = new Map<string, readonly string[]>([['every step', [...common].toSorted()]])
  for (const [file, { own }] of modules)
    for (const [name] of own) {
      const text = readFileSync(file, 'utf8')
      const word = new RegExp(
        `^export const ${name} = (c|coordP|p)\\w*\\(\\{\\s*(?:\\w+,\\s*)*?word: '(\\w+)'`,
        'm',
      ).exec(text)
      if (!word) continue
      const key =
        file.includes('/coordinates/') && ['fuse', 'reorder'].includes(word[2]!)
          ? `${word[2]} on coordinates`
          : word[2]!
      out.set(key, [...new Set(reach(file, name, new Set()))].filter((c) => !common.has(c)).toSorted())
    }
  return out
}
