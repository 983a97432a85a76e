/** Each command does what it says, on standard output and by its exit code. */
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { Binding } from '../../src/api/built/binding.ts'
import { main } from '../../src/cli/index.ts'
import { withProgress } from '../../src/cli/output/io.ts'
import { densePart, readTensor, safetensorsChunks, writeFile, writeTensor } from '../../src/io/index.ts'
import { Folder, MATRIX, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const program = folder.file('mul.spt', PROGRAM)
const matrix = folder.file('a.mtx', MATRIX)
const bound = ['--bind', `A=${matrix}`, '--size', 'd=3', '--size', 'alpha=2']

describe('spt', () => {
  test.each([['--help'], ['-h'], ['help']])('%s shows all commands', async (flag) => {
    const { code, out, err } = await spt([flag])
    expect(code).toBe(0)
    expect(err).toBe('')
    for (const c of ['run', 'check', 'fmt', 'show', 'emit', 'explain', 'doctor', 'records', 'bench'])
      expect(out).toMatch(new RegExp(`^  ${c}`, 'm'))
  })

  test.each(['run', 'check', 'fmt', 'show', 'emit', 'explain', 'doctor', 'records', 'bench'])(
    '%s --help',
    async (command) => {
      const { code, out } = await spt([command, '--help'])
      expect(code).toBe(0)
      expect(out).toContain(`Usage: spt ${command}`)
      expect((await spt(['help', command])).out).toBe(out)
    },
  )

  test('no command: help and a usage error', async () => {
    const { code, out, err } = await spt([])
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('Usage: spt <command>')
  })

  test('--version prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
    expect(await spt(['--version'])).toEqual({ code: 0, out: `sparsetile ${version}\n`, err: '' })
    const { code, out, err } = await spt(['--version', 'extra'])
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('spt: --version takes no arguments, not extra')
  })
})

describe('spt check', () => {
  test.each([
    ['packed', 'axis jo = sparse_variable(io, j) packed 3', '(i, j)', '(io, jo) -> (io, jo)', 'packed'],
    ['width', 'list jo = sparse_fixed(io, j, 0)', '(i, j, position(jo))', '(io, q) -> (io, jo[q])', 'extent'],
    [
      'back',
      'list jo = sparse_fixed(io, j, 4)',
      '(i, j, position(jo))',
      '(io, q) -> (io, jo[io])',
      'not-inverse',
    ],
  ])('tries formats that need no arguments: %s', async (name, axis, map, inverse, code) => {
    const text = (params: string): string => `format x${params} over (i, j) {
  axis io = dense_fixed(i)
  ${axis}
${axis.startsWith('list') ? '  axis q = dense_fixed(io, jo)\n' : ''}  map (i, j) -> ${map}
  inverse ${inverse}
}
`
    for (const params of ['', '(w = 1)']) {
      const { code: exit, out, err } = await spt(['check', folder.file(`${name}.spt`, text(params))])
      expect(err).toContain(`error[format/${code}]`)
      expect([exit, out]).toEqual([1, ''])
    }
    // What arguments say is not known.
    expect((await spt(['check', folder.file(`${name}.spt`, text('(w)'))])).code).toBe(0)
  })

  test.each([
    ['jo, io', 'jo', 'sparse_variable(io, j)'],
    ['io, io', 'io', 'dense_fixed(j)'],
    ['io, jo + 1', 'jo + 1', 'sparse_variable(io, j)'],
  ])(
    'reports which coordinate of (%s) does not survive the round trip, by itself and among parts',
    async (back, wrong, axis) => {
      const format = `format bad over (i, j) {
  axis io = dense_fixed(i)
  axis jo = ${axis}
  map (i, j) -> (i, j)
  inverse (io, jo) -> (${back})
}
`
      const parts = (text: string): string => `format parts over (i, j) {
  part x = ${text} where (i < 2)
  part rest = csr
}
`
      const kernel = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate s [i, j] as SR { C[i] += A[i, j] }
}
schedule k.s { A as bad where (i < 2) + csr }
`
      const imported = 'import "sparsetile/kernels/formats.spt"\n'
      for (const [text, count] of [
        [format, 1],
        [imported + format + parts('bad'), 2],
        [imported + format + kernel, 2],
      ] as const) {
        const { err } = await spt(['check', folder.file('bad.spt', text)])
        expect(err.match(/error\[format\/not-inverse\]/g)).toHaveLength(count)
        const line = `inverse (io, jo) -> (${back})`
        const under =
          ' '.repeat(line.lastIndexOf(wrong, wrong === 'jo' ? line.indexOf('>') + 3 : undefined)) +
          '^'.repeat(wrong.length)
        expect(err.split('\n').filter((l) => l.endsWith(`  ${line}`))).toHaveLength(count)
        expect(err.split('\n').filter((l) => l.endsWith(`|   ${under}`))).toHaveLength(count)
      }
    },
  )

  test('lists the declarations of a program', async () => {
    const { code, out, err } = await spt(['check', program])
    expect([code, err]).toEqual([0, ''])
    expect(folder.plain(out)).toBe('FOLDER/mul.spt: ok, kernel mul (schedules gpu, blocks)\n')
  })

  test('lists functions, monoids and dispatch tables of a file, and none that it imports', async () => {
    const library = folder.file(
      'library.spt',
      `schedule tile(i: loop, n) { split i by n -> (io, ii) }
monoid larger(v: f32) {
  identity (-inf)
  combine (a, b) = (max(a.v, b.v))
}
`,
    )
    const importing = folder.file('importing.spt', 'import "library.spt"\n')
    const table = folder.file('table.spt', 'dispatch k {\n  otherwise gpu\n}\n')
    const { out } = await spt(['check', library, importing, table])
    expect(folder.plain(out)).toBe(
      `FOLDER/library.spt: ok, monoid larger(v), function tile(i, n)
FOLDER/importing.spt: ok, nothing declared
FOLDER/table.spt: ok, dispatch k
`,
    )
  })

  test('accepts schedules that require warp shuffles, and states it', async () => {
    const { code, out, err } = await spt(['check', 'sparsetile/kernels/sddmm.spt'])
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('rows on cuda alone')
  })

  test('names the schedule that is legal on no device, and reports each limit once', async () => {
    const uses = Array.from({ length: 30 }, (_, k) => `schedule k.u${k + 1} { use u${k} use u${k} }`)
    const long = folder.file(
      'long.spt',
      `kernel k(m: size) {
        axis i = dense_fixed(m)
        axis j = sparse_variable(i, m)
        axis jd = dense_fixed(m)
        axis f = dense_fixed(m)
        buffer A: f32[i, j] in
        buffer X: f32[i, f] in
        buffer Y: f32[jd, f] in
        buffer C: f32[i, j] out
        iterate dot [i, j, f] as SSR { C[i, j] += A[i, j] * X[i, f] * Y[j, f] }
      }
      schedule k.u0 { }
      ${uses.join('\n')}
      schedule k.parted {
        split i by 2 -> (io, ii)  split f by 64 -> (fo, fi)
        bind io to block.x, ii to thread.y, fi to thread.x
      }`,
    )
    const { code, err } = await spt(['check', long])
    expect(code).toBe(1)
    expect(err.match(/schedule\/too-many-steps/g)).toHaveLength(1)
    expect(err).toMatch(/, under schedule k\.parted\n/)
  })

  test('lists what the file declares, not what it imports', async () => {
    const own = folder.file(
      'own.spt',
      `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/instructions/lanes.spt"
format mine over (i, j) { part csr }
${PROGRAM}`,
    )
    const { code, out } = await spt(['check', own])
    expect([code, out.match(/\b(format|memory|instr) \w+/g)]).toEqual([0, ['format mine']])
  })

  test('goes on after a file with errors', async () => {
    const bad = folder.file('bad.spt', 'kernel k() { axis }')
    const { code, out, err } = await spt(['check', bad, program])
    expect(code).toBe(1)
    expect(err).toContain('error[parse/')
    expect(out).toContain('mul.spt: ok')
  })

  test('finds steps that are not legal', async () => {
    const bad = folder.file('illegal.spt', `${PROGRAM}\nschedule mul.bad {\n  vectorize j\n}\n`)
    const { code, err } = await spt(['check', bad])
    expect(code).toBe(1)
    expect(err).toContain('illegal.spt:22:')
    expect(err).toContain('vectorize j')
  })

  test('--device runs instructions', async () => {
    const copy = (name: string, text: string): string =>
      `instr ${name}(D: f32[2] in register, S: f32[2] in global) {
        iterate copy [i] as S { D[i] = S[i] }
        ${text}
      }\n`
    const at = (k: number): string => `$D[${k}] = $S[$S.index(${k})];`
    const right = copy('right', `js \`${at(0)} ${at(1)}\``)
    const other = copy('other', `wgsl \`${at(0)} ${at(1)}\``)
    const wrong = copy('wrong', `js \`${at(0)} $D[1] = $D[0];\``)
    const good = folder.file('good.spt', right + other)
    expect(folder.plain((await spt(['check', good, '--device', 'cpu'])).out)).toBe(
      'FOLDER/good.spt: ok, instr right, instr other\n' +
        '  right    right\n  untested other: it has no text for js\n',
    )
    const bad = folder.file('wrong.spt', wrong + right)
    expect((await spt(['check', bad])).code).toBe(0)
    const { code, out, err } = await spt(['check', bad, '--device', 'cpu'])
    expect(code).toBe(1)
    expect(err).toMatch(/^error\[check\/wrong-instruction\]: on cpu, wrong differs from its body: D\[/)
    expect(err).toContain('wrong.spt:1:7')
    expect(folder.plain(out)).toBe('FOLDER/wrong.spt: 1 of 2 instructions wrong\n  right    right\n')
  })
})

describe('spt fmt', () => {
  const messy = PROGRAM.replaceAll(/ +/g, ' ').replace('kernel', '// what it does\nkernel')

  test('rewrites in place, once, and keeps comments', async () => {
    const path = folder.file('messy.spt', messy)
    expect(await spt(['fmt', path])).toEqual({ code: 0, out: '', err: '' })
    const formatted = readFileSync(path, 'utf8')
    expect(formatted).toContain('// what it does\nkernel mul(')
    expect(formatted).toContain('\n  axis i  = dense_fixed(m)\n')
    expect(await spt(['fmt', path, '--check'])).toEqual({ code: 0, out: '', err: '' })
  })

  test('--check lists and leaves alone', async () => {
    const path = folder.file('messy2.spt', messy)
    expect(await spt(['fmt', '--check', path, program])).toEqual({ code: 1, out: `${path}\n`, err: '' })
    expect(readFileSync(path, 'utf8')).toBe(messy)
  })

  test('- stands for standard input', async () => {
    const { code, out } = await spt(['fmt', '-'], { stdin: messy })
    expect(code).toBe(0)
    expect(out).toContain('  axis i  = dense_fixed(m)')
    expect((await spt(['fmt', '--check', '-'], { stdin: out })).code).toBe(0)
    expect(await spt(['fmt', '-', '--check'], { stdin: messy })).toMatchObject({ code: 1, out: '<stdin>\n' })
  })

  test('does not change a file with an error', async () => {
    const path = folder.file('broken.spt', 'kernel {')
    expect((await spt(['fmt', path])).code).toBe(1)
    expect(readFileSync(path, 'utf8')).toBe('kernel {')
  })
})

describe('spt show', () => {
  const show = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await spt(['show', program, ...args])
    expect([code, err]).toEqual([0, ''])
    return out
  }

  test('each stage', async () => {
    expect(await show()).toContain('iterate sum [i, j, f] as SRS')
    expect(await show('--stage', '1')).toBe(await show())
    expect(await show('--stage=2')).toContain('for i in 0..m')
    expect(await show('--stage', '3')).toMatch(/^plan mul\(/)
  })

  test('after each step of a schedule', async () => {
    const at = (n: number) => show('--schedule', 'gpu(8)', '--stage', '2', '--after', String(n))
    expect(await at(0)).toBe(await show('--stage', '2'))
    expect(await at(1)).toMatch(/for f in .*\n\s+for j in/)
    expect(await at(2)).toContain('for ii in 0..8')
    expect(await at(2)).not.toContain('block.x')
    expect(await at(4)).toBe(await show('--schedule', 'gpu(8)', '--stage', '2'))
    expect(await at(4)).toContain('block.x')
  })

  test('after each pass', async () => {
    expect(await show('--after', 'positions')).toBe(await show('--stage', '2'))
    expect(await show('--after', 'reduction-initialization')).toMatch(/^kernel mul/)
    expect(await show('--after', 'launch-outlining', '--stage', '3')).toMatch(/^plan mul/)
    expect(await show('--after', 'search-expansion')).toBe(await show('--stage', '3'))
    expect(await show('--after', 'buffer-flattening')).not.toBe(await show('--stage', '3'))
  })
})

describe('spt show --pit', () => {
  const path = folder.file(
    'conv.spt',
    `import "sparsetile/kernels/formats.spt"

kernel conv(n: size, m: size, f: size) {
  axis b = dense_fixed(n)
  axis c = dense_fixed(m)
  axis o = dense_fixed(f)
  axis x = dense_fixed(8)
  axis i = dense_fixed(3)
  axis z = dense_fixed(10)
  buffer A: f32[b, c, z] in
  buffer B: f32[b, c]    in
  buffer W: f32[o, c, i] in
  buffer T: f32[b, c, z] local
  buffer Y: f32[b, o, x] out
  iterate bias [b, c, z] as SSS { T[b, c, z] = A[b, c, z] + B[b, c] }
  iterate slide [b, o, x, c, i] as SSSRR {
    Y[b, o, x] += T[b, c, x + i] * W[o, c, i]
  }
}
`,
  )
  const show = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await spt(['show', path, '--pit', ...args])
    expect([code, err]).toEqual([0, ''])
    return `\n${out}`
  }

  test('the kernel, its iterations, micro-tiles and their formats', async () => {
    expect(await show('--tile', 'c=16', '--tile', 'b=4')).toMatchInlineSnapshot(`
      "
      kernel conv
        A  b  yes  with b of B, T, Y: results are permuted
        A  c  yes  with c of B, W, T: results are kept
        A  z  no   T is indexed by x + i, which is more than an iterator (17:27)
        B  b  yes  with b of A, T, Y: results are permuted
        B  c  yes  with c of A, W, T: results are kept
        W  o  yes  with o of Y: results are permuted
        W  c  yes  with c of A, B, T: results are kept
        W  i  no   the index x + i computes with the coordinate i (17:31)
        T  b  yes  with b of A, B, Y: results are permuted
        T  c  yes  with c of A, B, W: results are kept
        T  z  no   T is indexed by x + i, which is more than an iterator (17:27)
        Y  b  yes  with b of A, B, T: results are permuted
        Y  o  yes  with o of W: results are permuted
        Y  x  no   the index x + i computes with the coordinate x (17:27)

      iteration bias
        A  b  yes  with b of B, T: results are permuted
        A  c  yes  with c of B, T: results are permuted
        A  z  yes  with z of T: results are permuted
        B  b  yes  with b of A, T: results are permuted
        B  c  yes  with c of A, T: results are permuted
        T  b  yes  with b of A, B: results are permuted
        T  c  yes  with c of A, B: results are permuted
        T  z  yes  with z of A: results are permuted

      iteration slide
        W  o  yes  with o of Y: results are permuted
        W  c  yes  with c of T: results are kept
        W  i  no   the index x + i computes with the coordinate i (17:31)
        T  b  yes  with b of Y: results are permuted
        T  c  yes  with c of W: results are kept
        T  z  no   T is indexed by x + i, which is more than an iterator (17:27)
        Y  b  yes  with b of T: results are permuted
        Y  o  yes  with o of W: results are permuted
        Y  x  no   the index x + i computes with the coordinate x (17:27)

      micro-tiles
        A  b  1 × 16 × 32  of b = 4, c = 16, z = 32                  no format: A_along_b skips coordinates of A with the fill value, which would change T of conv
        A  c  4 × 1 × 32   of b = 4, c = 16, z = 32                  no format: A_along_c skips coordinates of A with the fill value, which would change T of conv
        B  b  1 × 16       of b = 4, c = 16, z = 32                  no format: B_along_b skips coordinates of B with the fill value, which would change T of conv
        B  c  4 × 1        of b = 4, c = 16, z = 32                  no format: B_along_c skips coordinates of B with the fill value, which would change T of conv
        W  o  1 × 16 × 32  of o = 32, c = 16, i = 32, b = 4, x = 32  W_along_o
        W  c  32 × 1 × 32  of o = 32, c = 16, i = 32, b = 4, x = 32  W_along_c

      format W_along_o over (o, c, i) {
        axis c_o = dense_fixed(ceildiv(c, 16))
        axis i_o = dense_fixed(c_o, ceildiv(i, 32))
        axis o_g = dense_variable(i_o, o)
        axis o_o = sparse_fixed(o_g, o, 32)
        axis c_i = dense_fixed(o_o, 16)
        axis i_i = dense_fixed(c_i, 32)
        map (o, c, i) -> (c / 16, i / 32, rank(o by c / 16, i / 32) / 32, o, c % 16, i % 32)
        inverse (c_o, i_o, o_g, o_o, c_i, i_i) -> (o_o, c_o * 16 + c_i, i_o * 32 + i_i)
      }

      format W_along_c over (o, c, i) {
        axis o_o = dense_fixed(ceildiv(o, 32))
        axis i_o = dense_fixed(o_o, ceildiv(i, 32))
        axis c_g = dense_variable(i_o, c)
        axis c_o = sparse_fixed(c_g, c, 16)
        axis o_i = dense_fixed(c_o, 32)
        axis i_i = dense_fixed(o_i, 32)
        map (o, c, i) -> (o / 32, i / 32, rank(c by o / 32, i / 32) / 16, c, o % 32, i % 32)
        inverse (o_o, i_o, c_g, c_o, o_i, i_i) -> (o_o * 32 + o_i, c_o, i_o * 32 + i_i)
      }
      "
    `)
  })

  test('one iteration', async () => {
    expect(await show('--kernel', 'conv', '--iteration', 'bias')).toMatchInlineSnapshot(`
      "
      iteration bias
        A  b  yes  with b of B, T: results are permuted
        A  c  yes  with c of B, T: results are permuted
        A  z  yes  with z of T: results are permuted
        B  b  yes  with b of A, T: results are permuted
        B  c  yes  with c of A, T: results are permuted
        T  b  yes  with b of A, B: results are permuted
        T  c  yes  with c of A, B: results are permuted
        T  z  yes  with z of A: results are permuted
      "
    `)
  })
})

describe('spt show --space', () => {
  const path = folder.file(
    'space.spt',
    `${PROGRAM}
schedule mul.some(most = 8) choose by search {
  format F in dcsr, hyb(1, k)
  k in 1, 2
  by in 2, 4 .. most where (by <= d)
  either { A as F } or {}
  use gpu(by) or blocks(by) or nested
}
schedule mul.nested choose by search {
  tile in 1, 2, 3
  split nowhere by tile
}
import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"
`,
  )
  const show = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await spt(['show', path, '--space', ...args])
    expect([code, err]).toEqual([0, ''])
    return out
  }

  test('decisions, points and rejected points', async () => {
    expect(await show('some(16)', ...bound.slice(0, 2), '--size', 'd=4')).toMatchInlineSnapshot(`
      "space        mul.some(16) on cpu
      points       28
      legal        4 of all 28
      rejected     24 schedule/unknown-loop

      either       one of 2, with the points of each
        21  { A as F }
         7  { }
      F            one of 2, with the points of each, with either = { A as F }
         7  dcsr
        14  hyb(1, k)
      use          one of 3, with the points of each
         8  gpu(by)
         8  blocks(by)
        12  nested
      k            1, 2, with F = hyb(1, k)
      by           2, 4, with use = gpu(by) or blocks(by)
      nested.tile  1, 2, 3, with use = nested
      "
    `)
  })

  test('tests fewer points, or none', async () => {
    expect(await show('some', '--size', 'd=8', '--survey', '5')).toMatch(/^legal +\d of 5 sampled points$/m)
    expect(await show('some', '--size', 'd=8', '--survey', '0')).not.toMatch(/^legal/m)
  })

  test('sketches, sampled if there are too many', async () => {
    const few = folder.file(
      'few.spt',
      `${PROGRAM}import { bsr, sell, strips } from "sparsetile/kernels/formats.spt"\n`,
    )
    const { out } = await spt(['show', few, '--space', 'sketches', '--device', 'cuda', '--survey', '3'])
    expect(out).toMatch(/^points +about [\d,]+, estimated from a sample$/m)
    expect(out).toMatch(/^sum\.sketch +one of 3/m)
  })
})

test('a Matrix Market array of one column is a vector', async () => {
  const kernel = folder.file(
    'double.spt',
    'kernel double(n: size) {\n  axis i = dense_fixed(n)\n  buffer x: f32[i] in\n  buffer y: f32[i] out\n  iterate twice [i] as S { y[i] = 2 * x[i] }\n}\n',
  )
  const x = folder.file('x.mtx', '%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n')
  for (const size of [[], ['--size', 'n=3']])
    expect(await spt(['run', kernel, '--bind', `x=${x}`, ...size, '--verify'])).toMatchObject({
      code: 0,
      err: '',
    })
  const row = folder.file('row.mtx', '%%MatrixMarket matrix array real general\n1 3\n1\n2\n3\n')
  expect((await spt(['run', kernel, '--bind', `x=${row}`])).err).toContain('bind/rank')
})

describe('spt emit', () => {
  test.each([
    ['wgsl', '@compute @workgroup_size(1, 4, 1)'],
    ['cuda', 'extern "C" __global__'],
    ['js', 'export function mul_0'],
  ])('%s', async (target, text) => {
    const { code, out, err } = await spt(['emit', program, '--target', target])
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain(text)
    expect(out).toContain('A: f32[]')
    expect(out).toMatch(/\}\n$/)
    if (target !== 'js')
      expect(out).toMatch(/^\/\/ {3}(workgroups|blocks): .*m.* × d × 1, of 1 × 4 × 1 threads$/m)
  })

  test('a kernel without a schedule is printed with the default schedule for its sizes', async () => {
    const path = folder.file('plain.spt', PROGRAM.slice(0, PROGRAM.indexOf('schedule')))
    const printed = async (target: string, ...sizes: string[]) => {
      const { code, out, err } = await spt(['emit', path, '--target', target, ...sizes])
      expect([code, err]).toEqual([0, ''])
      expect(out.split('\n')[0]).toMatch(/^\/\/ schedule: .*: selected by a rule, without predicted times$/)
      return out
    }
    for (const target of ['cuda', 'wgsl']) {
      const wide = await printed(target, '--size', 'd=256')
      expect(wide).toMatch(/^\/\/ {3}(workgroups|blocks): .*, of [1-9]\d+ × /m)
      // With a vector for each lane, and nothing left over.
      expect(wide).not.toBe(await printed(target))
    }
    expect(await printed('js', '--size', 'd=4')).toContain('new Float64Array(4)')
    expect(await printed('js', '--size', 'd=64')).toContain('new Float64Array(16)')
    const statistic = await spt(['emit', path, '--target', 'cuda', '--size', 'longest(j)=4'])
    expect(statistic.err).toContain('has no effect')
  })

  test('without a schedule it prints the default schedule and its predicted time', async () => {
    const path = folder.file('plain.spt', PROGRAM.slice(0, PROGRAM.indexOf('schedule')))
    const bound = ['--bind', `A=${matrix}`, '--size', 'd=8', '--size', 'alpha=2']
    const told = /^schedule {2}.*: predicted [\d.]+ ms \(cost model: .*\)$/m
    const plain =
      /^schedule {2}parallel\(\): on a software adapter, compiling tuned loops takes longer than running \d+ iterations/m
    const { out } = await spt(['run', path, ...bound, '--device', 'webgpu', '--seed', '1'])
    expect(out).toMatch(out.includes('SwiftShader') ? plain : told)
    for (const device of ['cuda', 'webgpu']) {
      const explained = (await spt(['explain', path, ...bound, '--device', device])).out
      expect(explained).toMatch(
        explained.includes('SwiftShader')
          ? plain
          : /^schedule +.*: predicted [\d.]+ ms \(cost model: .*\)\n +.*: [\d.]+ ms$/m,
      )
    }
    for (const target of ['cuda', 'wgsl'])
      expect((await spt(['emit', path, ...bound.slice(0, 4), '--target', target])).out).toMatch(
        /^\/\/ schedule: .*: predicted [\d.]+ ms; .*: [\d.]+ ms$/m,
      )
    expect((await spt(['explain', path, ...bound, '--device', 'cpu'])).out).toMatch(
      /^schedule {2}default: selected by a rule, without predicted times$/m,
    )
  })

  test('several modules: headers on standard output, files in a folder', async () => {
    const two = folder.file(
      'two.spt',
      `kernel two(n: size) {
  axis i = dense_fixed(n)
  buffer A: f32[i] in
  buffer T: f32[i] out
  buffer C: f32[i] out
  iterate first [i] as S { T[i] = A[i] + 1 }
  iterate second [i] as S { C[i] = T[i] * 2 }
}`,
    )
    const { out } = await spt(['emit', two, '--target', 'wgsl'])
    expect(out.match(/^\/\/ ==== module .*$/gm)).toEqual([
      '// ==== module 1 of 2: two_0 ====',
      '// ==== module 2 of 2: two_1 ====',
    ])
    const { code, err } = await spt(['emit', two, '--target', 'wgsl', '--out', folder.at('shaders/')])
    expect(code).toBe(0)
    expect(folder.plain(err)).toBe('wrote FOLDER/shaders/two_0.wgsl\nwrote FOLDER/shaders/two_1.wgsl\n')
    expect(readFileSync(folder.at('shaders/two_1.wgsl'), 'utf8')).toContain('fn two_1')
    const refused = await spt(['emit', two, '--target', 'wgsl', '--out', folder.at('two.wgsl')])
    expect([refused.code, existsSync(folder.at('two.wgsl'))]).toEqual([2, false])
    expect(folder.plain(refused.err)).toContain(
      'spt emit: --out FOLDER/two.wgsl cannot hold 2 WGSL modules in one file',
    )
    expect(folder.plain(refused.err)).toContain('hint: --out FOLDER/two/')
    expect((await spt(['emit', two, '--target', 'cuda', '--out', folder.at('two.cu')])).code).toBe(0)
    expect(readFileSync(folder.at('two.cu'), 'utf8')).toMatch(/two_0\([\s\S]*two_1\(/)
  })
})

describe('spt run', () => {
  const json = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { code, out, err } = await spt(['run', program, ...bound, '--json', ...args])
    expect([code, err]).toEqual([0, ''])
    expect(out.trim().split('\n')).toHaveLength(1)
    return JSON.parse(out) as Record<string, unknown>
  }

  test('the fill of stored blocks is reported', async () => {
    const blocks = new URL('../io/fixtures/bsr.npz', import.meta.url).pathname
    const args = ['run', program, '--bind', `A=${blocks}`, '--size', 'd=3', '--size', 'alpha=2']
    const { out, err } = await spt([...args, '--json'])
    expect(err).toBe('')
    expect(JSON.parse(out)).toMatchObject({ nnz: { A: 5 }, zeros: { A: 19 } })
    expect((await spt(args)).out).toContain('zeros     A = 19 of stored blocks are padding, left out\n')
    expect((await spt(['format', blocks])).out).toMatch(/zeros +19 of stored blocks are padding, left out/)
  })
  test('--json: one object, these keys', async () => {
    const r = await json('--verify', '--repeat', '2')
    expect(Object.keys(r)).toEqual([
      'kernel',
      'device',
      'deviceName',
      'schedule',
      'unorderedSums',
      'sizes',
      'nnz',
      'stored',
      'duplicates',
      'converted',
      'zeros',
      'bytes',
      'peak',
      'time',
      'runs',
      'repeat',
      'random',
      'seed',
      'written',
      'dispatch',
      'form',
      'deterministic',
      'live',
      'verify',
    ])
    expect(r).toMatchObject({
      kernel: 'mul',
      device: 'cpu',
      schedule: null,
      dispatch: null,
      deterministic: true,
      unorderedSums: [],
      sizes: { m: 3, n: 4, d: 3, alpha: 2 },
      nnz: { A: 4 },
      zeros: {},
      verify: { ok: true },
    })
    const time = r.time as Record<string, number>
    const { run: median, first, total, ...phases } = time
    const named = [
      'parse',
      'read',
      'open',
      'choose',
      'lower',
      'random',
      'build',
      'compile',
      'upload',
      'runs',
      'verify',
    ]
    expect(Object.keys(phases).sort()).toEqual([...named, 'write', 'count'].sort())
    // Every moment is in some row.
    expect(Object.values(phases).reduce((a, b) => a + b, 0)).toBeCloseTo(total!, 6)
    expect(median).toBeLessThanOrEqual(time.runs!)
    expect(first).toBeLessThanOrEqual(time.runs!)
    expect(r.peak).toBeGreaterThan(1e6)
    for (const t of Object.values(time)) expect(t).toBeGreaterThanOrEqual(0)
    const verify = r.verify as Record<string, unknown>
    expect(verify).toEqual({
      ok: true,
      verdict: 'agrees',
      maxRelativeError: expect.any(Number),
      maxAbsoluteError: expect.any(Number),
      elements: 9,
      compared: 9,
      undecided: 0,
      weak: 0,
      notANumber: 0,
      sampled: null,
      problems: [],
      warnings: [],
      reducerFault: null,
      runTime: expect.any(Number),
    })
    // 4 values and 4 indices, 4 row starts, 4 × 3 of B and 3 × 3 of C.
    expect(r.bytes).toBe(4 * (4 + 4 + 4 + 12 + 9))
    expect((await json()).verify).toBe(null)
  })

  test.each(['inf', '-inf', '-Infinity', 'nan'])('a scalar of %s', async (text) => {
    const argv = ['run', program, '--bind', `A=${matrix}`, '--size', 'd=3', '--size', `alpha=${text}`]
    const { code, err, out } = await spt([...argv, '--json'])
    expect([code, err]).toEqual([0, ''])
    const value = { inf: 'Infinity', '-inf': '-Infinity', nan: 'NaN' }[text] ?? text
    expect(String(JSON.parse(out).sizes.alpha)).toBe(value)
  })
  test('--json: a failure is data as well', async () => {
    const failure = async (...argv: string[]): Promise<Record<string, unknown>> => {
      const { code, out, err } = await spt([...argv, '--json'])
      expect(code).not.toBe(0)
      expect(err).not.toBe('')
      return (JSON.parse(out) as { error: Record<string, unknown> }).error
    }
    const broken = folder.file('broken.spt', 'kernel k() {\n  axis i = dense\n}\n')
    expect(await failure('run', broken)).toMatchObject({
      code: 'parse/unexpected',
      file: broken,
      line: 3,
      diagnostics: [{ file: broken }],
    })
    expect(await failure('run', 'nowhere.spt')).toMatchObject({ code: 'io/not-found' })
    expect(await failure('run', program, '--device', 'gpu')).toMatchObject({
      code: 'usage',
      candidates: ['cpu', 'webgpu', 'cuda'],
    })
    expect(await failure('doctor', 'extra')).toMatchObject({ code: 'usage' })
    // Where it takes a file, there; but not where the file may be meant for something else.
    const path = folder.at('failed.json')
    for (const argv of [
      ['explain', 'nowhere.spt', '--json', path],
      ['format', 'nowhere.mtx', `--json=${path}`],
    ]) {
      expect((await spt(argv)).code).toBe(1)
      expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ error: { code: 'io/not-found' } })
      writeFileSync(path, '')
      utimesSync(path, 0, 0)
    }
    expect((await spt(['explain', '--json', program])).code).toBe(2)
    expect(readFileSync(program, 'utf8')).toBe(PROGRAM)
  })

  test('progress is shown on a terminal and erased', async () => {
    let err = ''
    const io = {
      out: () => {},
      stdin: async () => '',
      color: { out: false, err: false },
      env: {},
      terminal: true,
    }
    await main(['run', program, ...bound, '--verify'], { ...io, err: (text) => (err += text) })
    expect(err).toContain('comparing with the reference …')
    expect(err.split('\r\x1b[K').at(-1)).toBe('')
    // What is said meanwhile has lines of its own.
    err = ''
    const shown = withProgress({ ...io, err: (text) => (err += text) })
    shown.progress!('lowering …')
    shown.err('note: left out\n')
    expect(err).toBe('lowering …\r\x1b[Knote: left out\n')
  })

  test("the schedule is the device's default or the requested one", async () => {
    expect((await json('--schedule', 'blocks(2)', '--verify')).schedule).toBe('blocks(2)')
    const gpu = await json('--device', 'webgpu', '--verify')
    // A software adapter runs `parallel()` instead.
    expect(gpu).toMatchObject({ device: 'webgpu', verify: { ok: true } })
    expect(gpu.schedule ?? (gpu.form as { form: string }).form).toMatch(/^(gpu|parallel\(\))$/)
  })

  test('a table on a terminal', async () => {
    const { code, out } = await spt(['run', program, ...bound, '--verify', '--seed', '7'])
    expect(code).toBe(0)
    expect(out).toMatch(/^kernel {4}mul$/m)
    expect(out).toMatch(/^random {4}B \(seed 7\)$/m)
    expect(out).toMatch(/^nonzeros {2}A = 4$/m)
    expect(out).toMatch(/^ok: agrees with the reference .*: all 9 elements\n/)
    expect(out).toMatch(/^time {6}[\d.]+ ms per run/m)
    expect(out).not.toContain('read the program')
    const verbose = (await spt(['run', program, ...bound, '--verbose'])).out
    expect(verbose).toMatch(/^ok: ran on random B, not verified; --verify compares/)
    expect(verbose).toMatch(/^total +[\d.]+ ms\n {2}read the program +[\d.]+ ms$/m)
  })

  test('NaN elements, duplicate entries, conversions and shapes that differ', async () => {
    const A = folder.file(
      'twice.mtx',
      '%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n1 1 2\n2 2 1\n',
    )
    const x = folder.at('nan.npy')
    const write = (values: number[]) =>
      writeTensor(x, {
        kind: 'dense',
        shape: [values.length],
        values: Float64Array.from(values),
        dtype: 'f64',
      })
    await write([1, Number.NaN])
    const argv = ['run', 'kernels/spmv.spt', '--kernel', 'spmv', '--bind', `A=${A}`, '--bind', `x=${x}`]
    const { out } = await spt([...argv, '--verify', '--verbose'])
    expect(out).toMatch(/^ok: agrees with the reference .*: all 2 elements; 1 is NaN in both\n/)
    expect(out).toMatch(/^nonzeros +A = 2 and 1 duplicate \(values added\)$/m)
    expect(out).toMatch(/^converted .*x: f64 to f32$/m)
    await write([1, 2, 3])
    const { err } = await spt([...argv, '--size', 'm=2'])
    expect(err).toContain('hint: check the shapes: A is 2 × 2, declared over [i, j]; x is 3')
    expect((await spt(['explain', 'nonsense'])).err).toContain(
      "'nonsense' is not a file and not an error code",
    )
  })

  test('a live structure: its fill ratio and build time', async () => {
    const masked = ['run', 'kernels/dynamic-sparsity.spt', '--kernel', 'masked_matmul', '--schedule', 'cpu']
    const A = folder.at('half.npy')
    const values = Float32Array.from({ length: 64 }, (_, k) => (k % 8 < 4 ? 1 : 0))
    await writeTensor(A, { kind: 'dense', shape: [8, 8], values, dtype: 'f32' })
    const { out } = await spt([...masked, '--bind', `A=${A}`, '--size', 'n=4'])
    expect(out).toMatch(/^built {5}A: \d+(\.\d+)? % of its elements stored, [\d.]+ ms to build$/m)
    const told = JSON.parse((await spt([...masked, '--bind', `A=${A}`, '--size', 'n=4', '--json'])).out)
    expect(told.live).toEqual([{ tensor: 'A', share: 0.5, milliseconds: expect.any(Number) }])
  })

  test('one tensor of a .safetensors file, and of a model in several', async () => {
    const values = [1.5, 0, -2, 0, 0, 0, 0, 0, 0, 4, 0, 0.5]
    const part = (name: string, shape: readonly number[], data: readonly number[]) =>
      densePart(name, { kind: 'dense', shape, values: Float32Array.from(data), dtype: 'f32' })
    const parts = [part('layer.0.weight', [3, 4], values), part('layer.0.bias', [2], [7, 8])]
    const model = folder.at('model.safetensors')
    await writeFile(model, safetensorsChunks(parts))
    const index = folder.file(
      'model.safetensors.index.json',
      JSON.stringify({ metadata: { total_size: 56 }, weight_map: { 'layer.0.weight': 'model.safetensors' } }),
    )
    const dense = folder.at('weights.npy')
    await writeTensor(dense, {
      kind: 'dense',
      shape: [3, 4],
      values: Float32Array.from(values),
      dtype: 'f32',
    })
    const results: unknown[] = []
    for (const path of [`${model}#layer.0.weight`, `${index}#layer.0.weight`, dense]) {
      const c = folder.at('c.safetensors')
      const argv = [
        'run',
        program,
        '--bind',
        `A=${path}`,
        '--size',
        'd=3',
        '--size',
        'alpha=2',
        '--seed',
        '1',
      ]
      expect((await spt([...argv, '--verify', '--out', `C=${c}`])).err).toBe('')
      results.push(await readTensor(c))
    }
    expect(results[0]).toMatchObject({ shape: [3, 3], dtype: 'f32' })
    expect(results.slice(0, 2)).toEqual([results[2], results[2]])
  })

  test('--out writes what the kernel computed from --bind', async () => {
    const b = folder.file(
      'b.mtx',
      `%%MatrixMarket matrix array real general\n4 2\n${[1, 2, 3, 4, 5, 6, 7, 8].join('\n')}\n`,
    )
    const c = folder.at('c.npy')
    const run = ['run', program, '--bind', `A=${matrix}`, '--bind', `B=${b}`, '--size', 'alpha=1']
    const { code } = await spt([...run, '--out', `C=${c}`, '--repeat', '5'])
    expect(code).toBe(0)
    const t = await readTensor(c)
    expect(t.shape).toEqual([3, 2])
    // Row 0: 1.5 * B0 - 2 * B2, row 2: 4 * B1 + 0.5 * B3.
    expect([...t.values!]).toEqual([1.5 - 6, 7.5 - 14, 0, 0, 8 + 2, 24 + 4])
  })

  test('--out writes an output that a format stores in parts', async () => {
    const parted = folder.file(
      'parted.spt',
      `import "sparsetile/kernels/formats-composed.spt"
      kernel parted(m: size, n: size) {
        axis i = dense_fixed(m)
        axis j = sparse_variable(i, n)
        buffer A: f32[i, j] in
        buffer P: f32[i, j] out
        iterate s [i, j] as SS { P[i, j] = A[i, j] * 2 }
      }
      schedule parted.hyb { A as hyb(1, 2) }`,
    )
    const out = folder.at('p.mtx')
    const run = ['run', parted, '--schedule', 'hyb', '--bind', `A=${matrix}`, '--verify', '--out']
    expect((await spt([...run, `P=${out}`])).code).toBe(0)
    const [A, P] = [await readTensor(matrix), await readTensor(out)]
    expect([...P.values!].sort()).toEqual([...A.values!].map((v) => 2 * v).sort())
    expect((await spt([...run, `P_w1=${out}`])).err).toMatch(/no output P_w1\n.*known: `P`/)
  })

  test('the same seed gives the same data, another seed others', async () => {
    const values = async (seed: string): Promise<number[]> => {
      const c = folder.at(`c${seed}.npy`)
      await spt(['run', program, ...bound, '--seed', seed, '--out', `C=${c}`])
      return [...(await readTensor(c)).values!]
    }
    const first = await values('1')
    expect(await values('1')).toEqual(first)
    expect(await values('2')).not.toEqual(first)
  })

  test('an inout buffer is written out as after one run', async () => {
    const path = folder.file(
      'step.spt',
      'kernel step(n: size) {\n  axis i = dense_fixed(n)\n  buffer X: f32[i] inout\n  iterate s [i] as S { X[i] = X[i] + 1 }\n}',
    )
    const npy = folder.at('x.npy')
    await writeTensor(npy, { kind: 'dense', shape: [2], values: Float32Array.of(1, 2), dtype: 'f32' })
    const after = folder.at('x2.npy')
    const { code } = await spt([
      'run',
      path,
      '--bind',
      `X=${npy}`,
      '--repeat',
      '7',
      '--verify',
      '--out',
      `X=${after}`,
    ])
    expect(code).toBe(0)
    expect([...(await readTensor(after)).values!]).toEqual([2, 3])
  })

  test('an axis takes structure without values', async () => {
    const { code, out } = await spt([
      'run',
      program,
      '--bind',
      `j=${matrix}`,
      '--size',
      'd=2',
      '--size',
      'alpha=1',
      '--json',
      '--verify',
    ])
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ nnz: { A: 4 }, sizes: { m: 3, n: 4 }, verify: { ok: true } })
  })

  test('d = 0 and m = 0 are sizes', async () => {
    expect(await json('--verify')).toMatchObject({ verify: { ok: true } })
    const zero = [
      'run',
      program,
      '--bind',
      `A=${matrix}`,
      '--size',
      'd=0',
      '--size',
      'alpha=1',
      '--verify',
      '--json',
    ]
    expect(JSON.parse((await spt(zero)).out)).toMatchObject({ sizes: { d: 0 }, verify: { ok: true } })
    for (const device of ['cpu', 'webgpu']) {
      const sizes = ['m=0', 'n=0', 'd=5', 'alpha=1'].flatMap((s) => ['--size', s])
      const { code, out } = await spt(['run', program, ...sizes, '--device', device, '--verify', '--json'])
      expect(code).toBe(0)
      expect(JSON.parse(out)).toMatchObject({ sizes: { m: 0 }, nnz: { A: 0 }, verify: { ok: true } })
    }
  })
})

describe('a wrong result', () => {
  test('exits 1 and prints the location', async () => {
    const verify = vi.spyOn(Binding.prototype, 'verify').mockResolvedValueOnce({
      ok: false,
      verdict: 'differs',
      maxRelativeError: Number.POSITIVE_INFINITY,
      maxAbsoluteError: 2,
      problems: ['C[1, 2] is 5, the reference has 7'],
      warnings: [],
      elements: 9,
      compared: 9,
      undecided: 0,
      weak: 0,
      notANumber: 0,
      reducerFault: null,
      sample: null,
      runTime: 1,
    })
    const { code, out, err } = await spt(['run', program, ...bound, '--verify', '--json'])
    verify.mockRestore()
    expect(code).toBe(1)
    expect(err).toContain('error[run/wrong-result]')
    expect(err).toContain('C[1, 2] is 5, the reference has 7')
    expect((JSON.parse(out) as { verify: unknown }).verify).toMatchObject({
      ok: false,
      maxRelativeError: 'Infinity',
      maxAbsoluteError: 2,
    })
  })

  test('states how many elements could be compared', async () => {
    const path = folder.file(
      'undecided.spt',
      `kernel undecided(n: size, c: f32) {
        axis i = dense_fixed(n)
        buffer A: f32[i] in
        buffer Y: f32[i] out
        iterate use [i] as S { Y[i] = select(i < 3, 1.0, floor(A[i] / (c * 3.0 - c - c - c))) }
      }`,
    )
    const run = (n: number) => spt(['run', path, '--size', `n=${n}`, '--size', 'c=0.1', '--verify', '--json'])
    const part = await run(5)
    expect([part.code, part.err]).toEqual([
      0,
      'warning[run/little-compared]: 40 % of the elements are decided by rounding, and not compared\n',
    ])
    expect(JSON.parse(part.out)).toMatchObject({
      verify: { ok: true, verdict: 'agrees', elements: 5, compared: 3, undecided: 2 },
    })
    const nothing = `kernel nothing(n: size) {
      axis i = dense_fixed(n)
      buffer A: f32[i] in
      buffer S: f32[] local
      buffer Y: f32[i] out
      iterate sum [i] as R { S[] += A[i] - A[i] * 1.0001 }
      iterate use [i] as S { Y[i] = floor(A[i] / (S[] - S[])) }
    }`
    const all = await spt(['run', folder.file('nothing.spt', nothing), '--size', 'n=4', '--verify'])
    expect(all.code).toBe(1)
    expect(all.err).toContain('error[run/nothing-compared]: the results cannot be verified')
    expect(all.err).toContain('no element was compared: all 4 are decided by rounding')
    expect(all.out).toMatch(/^NOTHING COMPARED: 0 of 4 elements; 4 are decided by rounding/m)
  })

  test('a large problem is verified on a sample, and the table says so', async () => {
    const text = `kernel first(m: size, d: size) {
      axis i = dense_fixed(m)
      axis f = dense_fixed(d)
      buffer B: f64[i, f] in
      buffer C: f64[i]    out
      iterate first [i] as S {
        C[i] = B[i, 0]
      }
    }`
    // Just over 128 MiB.
    const args = ['--size', 'm=2000', '--size', 'd=8500', '--verify', '--repeat', '1']
    const { code, out } = await spt(['run', folder.file('first.spt', text), ...args])
    expect(code).toBe(0)
    expect(out).toMatch(/^ok: agrees .*, on 1,000 coordinates of i: 1,000 of 2,000 elements$/m)
  })
})

describe('spt doctor', () => {
  test('lists every kind of device, with reason and remedy if absent', async () => {
    const { code, out } = await spt(['doctor', '--json'])
    expect(code).toBe(0)
    const { devices, packages } = JSON.parse(out) as Record<'devices' | 'packages', Record<string, unknown>[]>
    expect(packages).toEqual([
      { use: 'tuning records', available: true },
      { use: 'PNG figures', available: true },
    ])
    expect(devices.map((d) => d.kind)).toEqual(['cpu', 'webgpu', 'cuda'])
    for (const d of devices)
      if (!d.available) {
        expect(d.reason).toEqual(expect.any(String))
        expect(d.hint).toEqual(expect.any(String))
      }
    const text = (await spt(['doctor'])).out
    expect(text).toMatch(/^cpu {5}yes/m)
    expect(text).toMatch(/^webgpu {2}(yes|no)/m)
    expect(text).toMatch(/^cuda {4}(yes|no)/m)
    expect(text).toMatch(/^packages\n +tuning records +yes$/m)
  })
})

test('colours only on request', async () => {
  const path = folder.file('color.spt', 'kernel {')
  expect((await spt(['check', path])).err).not.toContain('\u001b')
  expect((await spt(['check', path], { color: true })).err).toContain('\u001b[31m')
})

test('files and options can come in any order, and after --', async () => {
  const path = folder.at('-odd.spt')
  writeFileSync(path, PROGRAM)
  const cwd = process.cwd()
  process.chdir(folder.path)
  try {
    expect((await spt(['check', '--', '-odd.spt'])).code).toBe(0)
    expect((await spt(['show', '--stage', '2', 'mul.spt'])).code).toBe(0)
  } finally {
    process.chdir(cwd)
  }
})
