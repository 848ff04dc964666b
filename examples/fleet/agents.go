package main

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// handbook is the file from which intake knows units. Intake writes it when it fixes what got in its way.
const handbook = "handbook.json"

// startAgents installs the SDKs from this repository and starts the agents.
func (f *fleet) startAgents(ctx context.Context, s *site) error {
	root, err := output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}"))
	if err != nil {
		return err
	}
	here := filepath.Join(root, "examples", "fleet")
	if err := os.WriteFile(filepath.Join(f.dir, handbook), []byte(`{"units": ["kg"]}`), 0o600); err != nil {
		return err
	}
	python, err := f.installPython(ctx, root)
	if err != nil {
		return err
	}
	pricing, err := f.installNode(ctx, root, filepath.Join(here, "pricing.mjs"))
	if err != nil {
		return err
	}
	if err := f.startAgent(ctx, s, "intake", python, filepath.Join(here, "intake.py"), filepath.Join(f.dir, handbook)); err != nil {
		return err
	}
	if err := f.startAgent(ctx, s, "pricing", "node", pricing); err != nil {
		return err
	}
	f.wg.Go(func() {
		if err := dispatch(ctx, s.url, s.keys["dispatch"]); err != nil && ctx.Err() == nil {
			say("dispatch has ended: %v", err)
		}
	})
	return nil
}

// startAgent starts the program of an agent.
func (f *fleet) startAgent(ctx context.Context, s *site, agent, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "PARLEY_SERVER="+s.url, "PARLEY_KEY="+s.keys[agent])
	_, err := f.start(ctx, agent, cmd)
	return err
}

// installPython makes an environment with the SDK, and returns its interpreter.
func (f *fleet) installPython(ctx context.Context, root string) (string, error) {
	venv := filepath.Join(f.dir, "python")
	if _, err := output(exec.CommandContext(ctx, "python3", "-m", "venv", venv)); err != nil {
		return "", err
	}
	python := filepath.Join(venv, "bin", "python")
	_, err := output(exec.CommandContext(ctx, python, "-m", "pip", "install", "--quiet", filepath.Join(root, "sdk", "python")))
	return python, err
}

// installNode packs the SDK, installs it beside a copy of a program, and returns the copy.
func (f *fleet) installNode(ctx context.Context, root, program string) (string, error) {
	dir := filepath.Join(f.dir, "node")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	source, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(dir, filepath.Base(program))
	if err := os.WriteFile(copied, source, 0o600); err != nil {
		return "", err
	}
	npm := func(dir string, args ...string) error {
		cmd := exec.CommandContext(ctx, "npm", args...)
		cmd.Dir = dir
		_, err := output(cmd)
		return err
	}
	sdk := filepath.Join(f.dir, "sdk")
	if err := copySources(filepath.Join(root, "sdk", "typescript"), sdk); err != nil {
		return "", err
	}
	if err := npm(sdk, "ci", "--silent", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"); err != nil {
		return "", err
	}
	if err := npm(sdk, "pack", "--silent", "--pack-destination", dir); err != nil {
		return "", err
	}
	packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil {
		return "", err
	}
	return copied, npm(dir, append([]string{"install", "--silent", "--no-save"}, packed...)...)
}

// copySources copies a folder of a package without what npm and builds have made in it.
func copySources(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "node_modules" || name == "dist" || name == "build" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	})
}
