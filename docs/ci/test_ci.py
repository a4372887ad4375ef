"""Workflows parse, their shell is shell, and the scripts do what they say: python3 -m unittest discover docs/ci"""

import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import yaml

HERE = pathlib.Path(__file__).parent
ACTIONS = {"actions/checkout@v4", "actions/upload-artifact@v4"}


def sh(*command, folder=HERE, **more):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "GIT_"))}
    return subprocess.run(command, cwd=folder, env=environment | more, capture_output=True, text=True)


class Workflows(unittest.TestCase):
    def test_workflows_parse_and_use_nothing_else(self):
        for path in HERE.glob("*.yml"):
            jobs = yaml.safe_load(path.read_text())["jobs"]
            self.assertNotIn("secrets.", path.read_text())
            for step in (step for job in jobs.values() for step in job["steps"]):
                self.assertTrue("run" in step or step["uses"] in ACTIONS, step)
                said = subprocess.run(["bash", "-n"], input=step.get("run", ""), text=True, capture_output=True)
                self.assertEqual((said.returncode, said.stderr), (0, ""), step)

    def test_scripts_are_shell_and_are_used(self):
        text = "".join(path.read_text() for path in HERE.glob("*.yml")) + (HERE / "README.md").read_text()
        for script in ("guard", "keep_alive", "idle_shutdown"):
            self.assertEqual(sh("bash", "-n", script).returncode, 0, script)
            self.assertIn(f".github/runner/{script}", text)


class Guard(unittest.TestCase):
    BEFORE = "jobs:\n  prove:\n    needs: guard\n    steps:\n      - run: bash .github/runner/keep_alive prove\n"

    def judge(self, path, text):
        """The guard's verdict on a change of one file to `text`."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.BEFORE)
            commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "change"]
            for command in (["git", "init", "-q"], ["git", "add", "."], commit):
                self.assertEqual(sh(*command, folder=folder).returncode, 0)
            file.write_text(text)
            self.assertEqual(sh(*commit, folder=folder).returncode, 0)
            return sh("bash", str(HERE / "guard"), "HEAD~1", "HEAD", folder=folder)

    def test_what_stops_the_runner_fails(self):
        for line in (
            "sudo shutdown -h now",
            "systemctl stop actions.runner.service",
            "./svc.sh uninstall",
            "./config.sh remove --token x",
            "terraform destroy -auto-approve",
            "aws ec2 terminate-instances --instance-ids i-1",
            "gcloud compute instances delete gpu",
            "az vm deallocate --name gpu",
            "gh api -X DELETE /repos/a/b/actions/runners/1",
        ):
            said = self.judge(".github/workflows/gpu.yml", self.BEFORE + f"      - run: {line}\n")
            self.assertEqual(said.returncode, 1, line + said.stderr)
            self.assertIn("::error file=.github/workflows/gpu.yml,title=", said.stdout)
        self.assertEqual(self.judge("infra/main.tf", self.BEFORE + "count = 0\n").returncode, 1)

    def test_what_keeps_it_alive_stays(self):
        for lost in ("    needs: guard\n", ".github/runner/keep_alive "):
            said = self.judge(".github/workflows/gpu.yml", self.BEFORE.replace(lost, ""))
            self.assertEqual(said.returncode, 1, lost)

    def test_other_changes_pass(self):
        for path, line in ((".github/workflows/gpu.yml", "cargo test"), ("src/main.rs", "shutdown")):
            said = self.judge(path, self.BEFORE + f"      - run: {line}\n")
            self.assertEqual((said.returncode, said.stdout), (0, "the runner stays\n"), said.stderr)

    def test_a_diff_that_cannot_be_made_is_no_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            sh("git", "init", "-q", folder=folder)
            self.assertNotEqual(sh("bash", str(HERE / "guard"), "nowhere", "HEAD", folder=folder).returncode, 0)


class Alive(unittest.TestCase):
    def test_a_command_is_kept_alive_priced_and_keeps_its_exit_code(self):
        with tempfile.TemporaryDirectory() as folder:
            alive, summary = pathlib.Path(folder, "alive"), pathlib.Path(folder, "summary")
            # The command makes the file old: only a beat while it runs makes it young again.
            script = 'touch -d "1 hour ago" "$KEEP_ALIVE"; sleep 0.6; exit 4'
            more = {"KEEP_ALIVE": str(alive), "KEEP_ALIVE_SECONDS": "0.1", "RATE": "3600 USD"}
            said = sh("bash", "keep_alive", "bash", "-c", script, **more, GITHUB_STEP_SUMMARY=str(summary))
            self.assertEqual(said.returncode, 4, said.stderr)
            self.assertRegex(said.stdout, r"^cost: 0\.00\d hours of GPU at 3600 USD an hour: \d\.00 USD\n$")
            self.assertEqual(summary.read_text().strip(), said.stdout.strip())
            self.assertLess(time.time() - alive.stat().st_mtime, 60)

    def test_only_an_idle_machine_shuts_down(self):
        with tempfile.TemporaryDirectory() as folder:
            alive = pathlib.Path(folder, "alive")
            now = int(time.time())

            def off(started):
                more = {"KEEP_ALIVE": str(alive), "STARTED": str(started)}
                return "OFF" in sh("bash", "idle_shutdown", "20", "echo", "OFF", **more).stdout.split("\n")

            self.assertFalse(off(now - 60), "it has just started")
            self.assertTrue(off(now - 3600))
            alive.touch()
            self.assertFalse(off(now - 3600), "something runs")
            os.utime(alive, (now - 1900, now - 1900))
            self.assertTrue(off(now - 3600))


if __name__ == "__main__":
    unittest.main()
