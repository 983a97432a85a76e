// The kernel checks no types: the cells of each notebook are one module for tsc. Those without the tag `measured` are another,
// since they run alone where the kernel is not installed.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { codeCells, isMeasured, readNotebook, textOf } from './document.mjs'

const root = resolve(import.meta.dirname, '../..')

/** Type errors, with the cell and the line in it. */
export function typeErrors(paths) {
  const folder = join(root, 'node_modules/.cache/notebooks')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const modules = new Map(
    paths.flatMap((path) => {
      const cells = codeCells(readNotebook(path))
      const name = basename(path, '.ipynb')
      const all = [`${name}.ts`, moduleOf(path, cells)]
      return cells.some(isMeasured) ? [all, [`${name}.unmeasured.ts`, moduleOf(path, cells, true)]] : [all]
    }),
  )
  for (const [name, { text }] of modules) writeFileSync(join(folder, name), text)
  const up = relative(folder, root)
  const compilerOptions = {
    noEmit: true,
    incremental: false,
    noUnusedLocals: false,
    // So that `../examples/` is what it is to a notebook.
    rootDirs: ['..', up],
    paths: Object.fromEntries(Object.entries(EXPORTED).map(([name, file]) => [name, [`${up}/${file}`]])),
  }
  const config = join(folder, 'tsconfig.json')
  writeFileSync(
    config,
    JSON.stringify({ extends: `${up}/tsconfig.json`, compilerOptions, include: ['*.ts'] }),
  )
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', config, '--pretty', 'false'], {
    encoding: 'utf8',
    cwd: folder,
  })
  const lines = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) =>
      line.replace(/^([\w.-]+)\((\d+),(\d+)\)/, (all, name, row, column) => {
        const module = modules.get(name)
        return module ? `${module.path} ${module.where(Number(row))}:${column}` : all
      }),
    )
  return [...new Set(lines)]
}

/** As `exports` of package.json has them. */
const EXPORTED = {
  sparsetile: 'dist/src/node.d.ts',
  'sparsetile/notebook': 'dist/src/notebook.d.ts',
  'sparsetile/search': 'dist/src/search.d.ts',
  'sparsetile/prune': 'dist/src/prune.d.ts',
  'sparsetile/families': 'dist/bench/families.d.ts',
}

function moduleOf(path, notebookCells, unmeasured = false) {
  const cells = notebookCells.map((c) => (unmeasured && isMeasured(c) ? '\n' : `${textOf(c.source)}\n`))
  const starts = []
  let line = 1
  for (const cell of cells) {
    starts.push(line)
    line += cell.split('\n').length - 1
  }
  const where = (row) => {
    const k = starts.findLastIndex((start) => start <= row)
    return `cell ${k + 1} line ${row - starts[k] + 1}`
  }
  const of = unmeasured ? `${path}, measured cells left out,` : path
  return { path: of, text: `${cells.join('')}export {}\n`, where }
}
