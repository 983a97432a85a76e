/**
 * Pages that run. Fenced blocks say what they are after the language:
 *
 *     ```spt file=rows.spt      the file, from here on
 *     ```ts run=arrays          TypeScript; all blocks of a page are one module, run from block to block
 *     ```sh run=check           one `spt` command, of which `| head -5` or `| grep 'a|b'` may show a part
 *     ```text output-of=check   what that block prints; times are written `… ms`
 *     ![text](rows.svg)         a picture that a block writes
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { inspect } from 'node:util'
import { transform } from 'esbuild'
import { main } from '../../src/cli/index.ts'
import * as onDevice from '../../src/device.ts'
import * as sparsetile from '../../src/node.ts'
import * as notebook from '../../src/notebook.ts'
import * as pruning from '../../src/prune.ts'
import * as searching from '../../src/search.ts'
import { onSimulatedDevices } from '../support/simulated-device.ts'

export interface Block {
  readonly kind: 'file' | 'ts' | 'sh' | 'output' | 'other'
  /** The file, or the run's name. */
  readonly name: string
  readonly text: string
  readonly language: string
  /** Of the opening fence, from 1. */
  readonly line: number
}

const FENCE = /^```(\w*)(?: ([\w-]+)=(\S+))?\n(.*?)^```$/gms

export function blocksOf(page: string): Block[] {
  return [...page.matchAll(FENCE)].map((m): Block => {
    const [, language = '', key, name = '', text = ''] = m
    const line = page.slice(0, m.index).split('\n').length
    return { kind: kindOf(language, key), name, text, language, line }
  })
}

function kindOf(language: string, key: string | undefined): Block['kind'] {
  if (key === 'file') return 'file'
  if (key === 'output-of') return 'output'
  if (key === 'run' && (language === 'ts' || language === 'sh')) return language
  return 'other'
}

/** The page with what its blocks print. */
export const renewed = (page: string, printed: ReadonlyMap<string, string>): string =>
  page.replace(FENCE, (block, language: string, key: string | undefined, name: string) =>
    key === 'output-of' ? `\`\`\`${language} ${key}=${name}\n${printed.get(name) ?? ''}\`\`\`` : block,
  )

export const picturesOf = (page: string): string[] =>
  [...page.matchAll(/^!\[[^\]]*\]\((\S+)\)/gm)].map((m) => m[1]!)

/** The TypeScript of a page, as one module. */
export const moduleOf = (blocks: readonly Block[]): string =>
  blocks
    .filter((b) => b.kind === 'ts')
    .map((b) => b.text)
    .join('\n')

export interface Outcome {
  /** What each run prints, by its name. */
  readonly printed: ReadonlyMap<string, string>
  /** The files that were asked for. */
  readonly made: ReadonlyMap<string, string>
}

/** Runs a page in a separate folder, from top to bottom. */
export async function run(blocks: readonly Block[], wanted: readonly string[] = []): Promise<Outcome> {
  const printed = new Map<string, string>()
  const made = new Map<string, string>()
  const home = process.cwd()
  const folder = mkdtempSync(join(tmpdir(), 'spt-docs-'))
  process.chdir(folder)
  try {
    let next = 0
    let sink = ''
    /** Everything before the k-th block, whose TypeScript comes next. */
    const upTo = async (k: number): Promise<void> => {
      for (; next < k; next++) {
        const b = blocks[next]!
        if (b.kind === 'file') {
          mkdirSync(dirname(resolve(b.name)), { recursive: true })
          writeFileSync(b.name, b.text)
        } else if (b.kind === 'sh') printed.set(b.name, await command(b))
      }
      sink = blocks[k]?.name ?? ''
      if (sink) printed.set(sink, printed.get(sink) ?? '')
    }
    const log = (...what: unknown[]): void => {
      const line = what.map((x) => (typeof x === 'string' ? x : inspect(x))).join(' ')
      printed.set(sink, `${printed.get(sink) ?? ''}${line}\n`)
    }
    await (await programOf(blocks))({
      modules: {
        node: sparsetile,
        device: onDevice,
        search: searching,
        prune: pruning,
        notebook,
        fs: { writeFileSync },
      },
      upTo,
      console: { log },
    })
    await upTo(blocks.length)
    for (const name of wanted) made.set(name, readFileSync(name, 'utf8'))
  } finally {
    process.chdir(home)
    rmSync(folder, { recursive: true, force: true })
  }
  return { printed: new Map([...printed].map(([name, text]) => [name, timeless(text)])), made }
}

interface Around {
  /** What pages import, by what stands after `sparsetile/`. */
  readonly modules: Readonly<Record<string, object>>
  readonly upTo: (k: number) => Promise<void>
  readonly console: { readonly log: (...what: unknown[]) => void }
}

async function programOf(blocks: readonly Block[]): Promise<(around: Around) => Promise<void>> {
  const text = blocks
    .map((b, k) => (b.kind === 'ts' ? `await upTo(${k})\n${b.text}` : ''))
    .join('\n')
    .replace(
      /^import (\{[^}]*\}) from '(?:sparsetile\/|node:)(node|device|search|prune|notebook|fs)'$/gm,
      (_, names: string, module: string) => {
        const values = names.replace(/\btype \w+,?/g, '').replaceAll(' as ', ': ')
        return `const ${values} = modules.${module}`
      },
    )
  const { code } = await transform(`export async function page({ modules, upTo, console }) {\n${text}\n}`, {
    loader: 'ts',
    format: 'cjs',
    target: 'es2022',
  })
  const module = { exports: {} as { page: (around: Around) => Promise<void> } }
  new Function('module', code)(module)
  return module.exports.page
}

/** `$ spt format 'a b' | head -5` or `| grep WORD`: the lines written to both streams, in order. */
async function command({ text, line }: Block): Promise<string> {
  const match =
    /^\$ spt ((?:'[^']*'|[^'|])*?)\s*(?:\| (?:head -(\d+)|grep (?:-E )?(?:'([^']+)'|(\w+))))?\s*$/.exec(text)
  if (!match) throw new Error(`line ${line}: a block of sh is one spt command`)
  const [, line_ = '', head, quoted, pattern = quoted] = match
  const argv = [...line_.matchAll(/(?:'[^']*'|\S)+/g)]
    .map(([word]) => word.replaceAll("'", ''))
    .filter((word) => word !== '2>&1')
  let written = ''
  const write = (s: string): void => {
    written += s
  }
  const host = { out: write, err: write, stdin: async () => '', color: { out: false, err: false }, env: {} }
  await (argv[0] === 'tune' ? onSimulatedDevices(() => main(argv, host)) : main(argv, host))
  if (pattern !== undefined)
    return written.replace(/.*\n?/g, (printed) => (new RegExp(pattern).test(printed) ? printed : ''))
  return head === undefined ? written : `${written.split('\n').slice(0, Number(head)).join('\n').trimEnd()}\n`
}

const timeless = (text: string): string => text.replace(/\d+(?:\.\d+)? (?:ms|s)\b/g, '… ms')
