"""
A car in a valley and a pole on a cart
======================================

An engine too weak for the slope: the car has to go back first. Six hundred random transitions,
kernel ridge regression for values of actions, and acting greedily by them are enough. The same
machine balances a pole after fifty random falls.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.reinforcement import KernelLSPI, MountainCar, Pendulum

car, pole = MountainCar(), Pendulum()
driver = KernelLSPI(discount=car.discount).fit(car.explore(600))
states, actions, arrived = car.follow(driver, steps=400)
print(f"arrived: {arrived}, after {len(actions)} steps")
print(driver.certificate_)

keeper = KernelLSPI(discount=pole.discount).fit(pole.wander(50, 20))
angles, pushes, fallen = pole.follow(keeper, steps=300)
falls = pole.wander(1, 300, random_state=3)
print(f"fallen: {fallen}, after {len(pushes)} steps; by chance after {len(falls)}")

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
x, v = np.meshgrid(np.linspace(-1.2, 0.5, 90), np.linspace(-0.07, 0.07, 80))
values = driver.value(np.column_stack([x.ravel(), v.ravel()])).reshape(x.shape)
shown = axes[0].contourf(x, v, values, levels=24, cmap="viridis")
figure.colorbar(shown, ax=axes[0], label="value of the state")
axes[0].plot(*states.T, color="white", lw=1.2)
axes[0].scatter(*states[:-1].T, c=actions, cmap="coolwarm", s=9, zorder=3)
axes[0].plot(*states[0], "wo", mec="k")
axes[0].set(title=f"the car arrives after {len(actions)} steps", xlabel="place", ylabel="speed")
axes[1].plot(0.1 * np.arange(len(angles)), np.degrees(angles[:, 0]), label="learnt")
fallen_at = np.degrees(np.append(falls.states[:, 0], falls.next_states[-1, 0]))
axes[1].plot(0.1 * np.arange(len(fallen_at)), fallen_at, color="C3", label="random pushes")
axes[1].axhspan(90, 110, color="C3", alpha=0.15)
axes[1].axhspan(-110, -90, color="C3", alpha=0.15)
axes[1].set(
    title="the pole stays up", xlabel="seconds", ylabel="degrees from upright", ylim=(-110, 110)
)
axes[1].legend()
plt.show()
